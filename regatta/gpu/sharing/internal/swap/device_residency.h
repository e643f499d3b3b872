// sharing/internal/swap/device_residency.h: the memory of this process on one device that the
// daemon may send to the host: calls that need it wait until all of it is there. It goes once no
// such call is under way and their work has ended. A thread of its own, made by the first
// allocation or watch(), does what the daemon says (regatta_residency_state in
// internal/ledger/page_layout.h) and tells it what the process does. Any thread may call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/swap/swappable_memory.h"

namespace regatta::sharing {

class DeviceResidency {
 public:
  using Home = SwapDevice::Home;

  // All have to outlive this. `calls`: how many threads of the process are in calls of the driver,
  // as far as somebody counts them.
  DeviceResidency(Client& client, int device, SwapDevice& swap,
                  std::uint64_t chunk_bytes = SwappableMemory::kChunk,
                  const std::atomic<int>* calls = nullptr);
  DeviceResidency(const DeviceResidency&) = delete;
  DeviceResidency& operator=(const DeviceResidency&) = delete;
  ~DeviceResidency();

  // From enter() to leave() all memory is there. One thread enters once. What a call gave the
  // device may go on after leave(): it is waited for before memory goes.
  void enter() {
    users_.fetch_add(1);
    // First the count, then a look: who closes does it the other way round.
    if (!is_open_.load()) wait_until_in();
    if (!is_touched_.load(std::memory_order_relaxed))
      is_touched_.store(true, std::memory_order_relaxed);
  }
  void leave() { users_.fetch_sub(1); }
  // As enter(), where it need not be waited for; false: it is not there, and nothing was entered.
  bool try_enter();

  // Says from now on what the process does, also where no memory of it is swappable: who is away as
  // a whole and calls the driver wants to come back.
  void watch();

  // Between enter() and leave(): what was launched may write to everything; a copy or set writes to
  // one allocation, or reads it.
  void launches() {
    if (!has_launched_.load(std::memory_order_relaxed))
      has_launched_.store(true, std::memory_order_relaxed);
  }
  void writes(std::uint64_t address);

  // Memory of the home at an address that stays. kExhausted when the tenant's quota would be
  // exceeded, or there are no more addresses; other errors as Client::reserve().
  Result<std::uint64_t> allocate(Home home, std::uint64_t bytes);
  // Waits for the work of its home first; false when there is no such allocation.
  bool free(std::uint64_t address);
  void free_all(Home home);
  // The allocation that the address lies in.
  std::optional<SwappableMemory::Range> find(std::uint64_t address) const;
  SwappableMemory::Totals totals() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  bool is_all_there() const;
  void start_worker();
  void run_worker();
  void apply_grant();
  void give(std::uint64_t may);
  void move_in(std::uint64_t may);
  void wait_until_in();
  void open_if_in();
  void publish(const SwappableMemory::Totals& totals);
  void say(regatta_activity doing);
  void say_what_is_done();
  void release(std::uint64_t address);

  Client& client_;
  const int device_;
  SwapDevice& swap_;
  const std::atomic<int>* const calls_;
  regatta_residency_state& page_;

  alignas(64) std::atomic<int> users_{0};
  std::atomic<bool> is_open_{true};
  std::atomic<bool> is_touched_{false};
  std::atomic<bool> has_launched_{false};
  std::atomic<int> waiting_{0};
  std::atomic<bool> stops_{false};

  mutable std::mutex mutex_;        // held while memory moves
  SwappableMemory swappable_;       // guarded by mutex_
  std::condition_variable opened_;  // with wait_mutex_
  std::mutex wait_mutex_;           // may be taken under mutex_
  std::mutex start_mutex_;
  std::uint64_t told_ns_ = 0;    // by the worker: when the daemon was told last
  std::uint64_t worked_ns_ = 0;  // by the worker: when a call was seen last
  std::thread worker_;           // guarded by start_mutex_
};

}  // namespace regatta::sharing
