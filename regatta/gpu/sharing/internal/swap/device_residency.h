// sharing/internal/swap/device_residency.h: the memory of this process on one device that the
// daemon may swap out: calls that need it wait until all of it is resident. It leaves once no such
// call is in progress and their work has ended. A worker thread, started by the first allocation or
// by watch(), follows the daemon's grants (regatta_residency_state in
// internal/ledger/page_layout.h) and reports what the process does. Any thread may call.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/swap/call_gate.h"
#include "regatta/gpu/sharing/internal/swap/residency_page.h"
#include "regatta/gpu/sharing/internal/swap/swappable_memory.h"

namespace regatta::sharing {

class DeviceResidency {
 public:
  using Home = SwapDevice::Home;

  // All arguments outlive this object. `calls`: threads of the process that are in calls of the
  // driver, as far as they are counted.
  DeviceResidency(Client& client, int device, SwapDevice& swap,
                  std::uint64_t chunk_bytes = SwappableMemory::kChunk,
                  const std::atomic<int>* calls = nullptr);
  DeviceResidency(const DeviceResidency&) = delete;
  DeviceResidency& operator=(const DeviceResidency&) = delete;
  ~DeviceResidency();

  // From enter() to leave() all memory is resident. A thread enters once. Work that a call gave to
  // the device may continue after leave(): memory leaves after it has ended.
  void enter() {
    if (!gate_.enter()) wait_until_resident();
    if (!is_touched_.load(std::memory_order_relaxed))
      is_touched_.store(true, std::memory_order_relaxed);
  }
  void leave() { gate_.leave(); }
  // As enter(), without waiting; false: the memory is not resident, and nothing was entered.
  bool try_enter();

  // Starts to report what the process does, also where none of its memory is swappable: a
  // checkpointed process that calls the driver has to be restored.
  void watch();

  // Between enter() and leave(): launched work may write to all memory; a copy or set writes to one
  // allocation.
  void launches() {
    if (!has_launched_.load(std::memory_order_relaxed))
      has_launched_.store(true, std::memory_order_relaxed);
  }
  void writes(std::uint64_t address);

  // Memory of the home at a constant address. kExhausted when the tenant's quota would be exceeded,
  // or the driver has no more addresses; other errors as Client::reserve().
  Result<std::uint64_t> allocate(Home home, std::uint64_t bytes);
  // Waits for the work of its home first; false when there is no such allocation.
  bool free(std::uint64_t address);
  void free_all(Home home);
  // The allocation that contains the address.
  std::optional<SwappableMemory::Range> find(std::uint64_t address) const;
  SwappableMemory::Totals totals() const;

 private:
  bool is_all_resident() const REGATTA_REQUIRES(mutex_);
  void start_worker();
  void run_worker();
  void apply_grant();
  void swap_out(std::uint64_t granted);
  std::uint64_t move_in(std::uint64_t granted) REGATTA_REQUIRES(mutex_);
  void wait_until_resident();
  void open_if_resident() REGATTA_REQUIRES(mutex_);
  void report_activity();
  void release(std::uint64_t address) REGATTA_REQUIRES(mutex_);
  void lease_no_more() REGATTA_REQUIRES(mutex_);

  Client& client_;
  const int device_;
  SwapDevice& swap_;
  const std::atomic<int>* const calls_;
  ResidencyPage page_;
  CallGate gate_;
  std::atomic<bool> is_touched_{false};
  std::atomic<bool> has_launched_{false};
  std::atomic<bool> stops_{false};

  mutable Mutex mutex_;  // held while memory moves
  SwappableMemory swappable_ REGATTA_GUARDED_BY(mutex_);
  std::uint64_t worked_ns_ = 0;  // by the worker: when a call was last seen
  Mutex start_mutex_;            // lets one thread start the worker
  std::thread worker_;           // started with start_mutex_
};

}  // namespace regatta::sharing
