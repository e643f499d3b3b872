// sharing/internal/hook/memory.h: what the files about device memory share. Memory is reserved with
// the tenant before the driver is asked; no lock is held while the driver works.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/hook/allocation_table.h"
#include "regatta/gpu/sharing/internal/hook/driver.h"
#include "regatta/gpu/sharing/internal/hook/tenant.h"

namespace regatta::sharing::hook {

AllocationTable& allocations();
Blocks& blocks(int device);

// Where an allocation of the calling thread goes; none: no context is current, as the driver will
// say itself.
struct DeviceContext {
  CUcontext context = nullptr;
  CUdevice device = 0;
};
std::optional<DeviceContext> current_device_context();

// Whether work given to the stream is recorded and not begun: nothing may wait for it.
bool is_capturing(CUstream stream);

// Around every call that changes how much memory the process has: what the driver holds is compared
// with what is counted only when none is under way.
class AccountingGuard {
 public:
  AccountingGuard() { go_on(); }
  ~AccountingGuard() { pause(); }
  AccountingGuard(const AccountingGuard&) = delete;
  AccountingGuard& operator=(const AccountingGuard&) = delete;

  // From pause() to go_on() the call changes nothing: it waits to be allowed.
  void pause() {
    ended.fetch_add(1, std::memory_order_relaxed);
    under_way.fetch_sub(1, std::memory_order_seq_cst);
  }
  void go_on() { under_way.fetch_add(1, std::memory_order_seq_cst); }

  static std::atomic<int> under_way;
  static std::atomic<std::uint64_t> ended;
};

// Gives back what was counted for an allocation that the driver has freed.
void give_back(const Allocation& allocation);

// Memory whose extent only the driver can tell, like that of a pool: what is counted follows what
// it says after each call, and what a call under way may take is counted before it.
class DriverReportedUsage {
 public:
  struct Call {
    std::uint64_t expected = 0;
    std::uint64_t number = 0;
    std::uint64_t measured_before = 0;
    bool has_failed = false;
  };
  // Before a call that may take up to `most`; none: the tenant may not have it. As reserve().
  std::optional<Call> begin(int device, std::uint64_t most, AccountingGuard* busy);

  struct Outcome {
    bool is_within = true;    // else the call has to be undone and settled again
    std::uint64_t grown = 0;  // by this call, when no other was under way beside it
  };
  // After it; `measure` asks the driver what it holds. Where that is not known, all that was
  // expected counts as taken until it is, unless the call failed.
  template <typename F>
  Outcome settle(int device, const Call& call, F&& measure) {
    // Whoever drew a later number has seen all that those before it did.
    const std::uint64_t number = last_.fetch_add(1) + 1;
    return apply(device, call, number, measure());
  }

  std::uint64_t held_bytes();

 private:
  Outcome apply(int device, const Call& call, std::uint64_t number,
                std::optional<std::uint64_t> measured);

  std::atomic<std::uint64_t> last_ = 0;
  Mutex mutex_;
  std::uint64_t begun_ REGATTA_GUARDED_BY(mutex_) = 0;
  std::uint64_t applied_ REGATTA_GUARDED_BY(mutex_) = 0;
  std::uint64_t measured_ REGATTA_GUARDED_BY(mutex_) = 0;  // when last_ was applied_
  std::uint64_t expected_ REGATTA_GUARDED_BY(mutex_) = 0;  // by calls under way
  std::uint64_t held_ REGATTA_GUARDED_BY(mutex_) = 0;
};

// exports_graphs.cc: a launch that may take memory.
CUresult launch_with_memory(DriverFunction<DriverEntry::cuGraphLaunch> real, CUgraphExec graph,
                            CUstream stream);
extern std::atomic<bool> has_graph_memory;

// exports_pools.cc: takes notice of what pools gave back to the device. `is_idle`: all work was
// waited for.
void settle_pools(bool is_idle);
// The driver has freed what is known of a pool's allocation, or will when its stream comes to it.
void forget_in_pool(const Allocation& allocation);

// contexts.cc: counts what a context takes that was made past us, as the runtime library makes them
// by a table of its own (cuGetExportTable), the first time that it is met. False: it is more than
// the tenant may have. Not within a AccountingGuard of the same thread.
bool account_context(const DeviceContext& place);

// exports_shares.cc: whether this process showed memory to others, or opened some of theirs.
extern std::atomic<bool> shares_memory;
enum class SettleMode : std::uint8_t { kAlways, kPeriodically };
// contexts.cc: takes notice of memory that is now, or is no more, this process's because another
// one has it open or had it. Not within a AccountingGuard of the same thread. Of the current
// context's device.
void settle_known_shares(SettleMode when);
inline void settle_shares(SettleMode when) {
  if (shares_memory.load(std::memory_order_relaxed)) [[unlikely]]
    settle_known_shares(when);
}

}  // namespace regatta::sharing::hook
