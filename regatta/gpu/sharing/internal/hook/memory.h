// sharing/internal/hook/memory.h: accounting shared by the files about device memory. Memory is
// reserved with the tenant before the driver is called; no lock is held during the driver's call.
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

// Context and device of the calling thread's allocations; none without a current context, for which
// the driver has an error of its own.
struct DeviceContext {
  CUcontext context = nullptr;
  CUdevice device = 0;
};
std::optional<DeviceContext> current_device_context();

// Whether the stream is being captured: its work is recorded and does not begin, so nothing may
// wait for it.
bool is_capturing(CUstream stream);

// Surrounds every call that changes the process's memory: the driver's total is compared with the
// counted bytes only when no such call is in progress.
class AccountingGuard {
 public:
  AccountingGuard() { go_on(); }
  ~AccountingGuard() { pause(); }
  AccountingGuard(const AccountingGuard&) = delete;
  AccountingGuard& operator=(const AccountingGuard&) = delete;

  // From pause() to go_on() the call only waits for permission.
  void pause() {
    ended.fetch_add(1, std::memory_order_relaxed);
    under_way.fetch_sub(1, std::memory_order_seq_cst);
  }
  void go_on() {
    under_way.fetch_add(1, std::memory_order_seq_cst);
    if (is_measuring.load(std::memory_order_seq_cst)) [[unlikely]]
      wait_for_measurement();
  }

  static std::atomic<int> under_way;
  static std::atomic<std::uint64_t> ended;
  // Set while a measurement waits for the calls under way to end: no other begins.
  static std::atomic<bool> is_measuring;

 private:
  void wait_for_measurement();
};

// Releases the bytes that were counted for an allocation which the driver has freed.
void release_bytes(const Allocation& allocation);

// Memory whose size only the driver can tell, as that of a pool: the count follows its answer after
// each call, and the possible growth of a call in progress is counted before it. Memory that is
// found beyond the quota is counted, too, as a debt (tenant.h).
class DriverReportedUsage {
 public:
  struct Call {
    std::uint64_t expected = 0;
    std::uint64_t number = 0;
    std::uint64_t measured_before = 0;
    bool has_failed = false;
    std::uint64_t freed = 0;  // what the call gave back, where that cannot be measured
  };
  // The size that the driver reports.
  struct Reading {
    Reading(std::uint64_t size, bool is_lower_bound = false)
        : bytes(size), is_least(is_lower_bound) {}
    std::uint64_t bytes;
    bool is_least;  // it may be more, by what calls in progress take
  };
  // Before a call that may take up to `most` bytes; none: the tenant may not have them. As
  // reserve().
  std::optional<Call> begin(int device, std::uint64_t most, AccountingGuard* busy);

  struct Outcome {
    bool is_within = true;    // else undo the call and settle again
    std::uint64_t grown = 0;  // by this call, if no other ran at the same time
  };
  // After the call; `measure` asks the driver for the size. While that is unknown, all expected
  // bytes count as taken, unless the call failed.
  template <typename F>
  Outcome settle(int device, const Call& call, F&& measure) {
    // A thread with a later number sees the effects of all earlier ones.
    const std::uint64_t number = last_.fetch_add(1) + 1;
    const std::uint64_t completed = completed_.load();
    return apply(device, call, {number, completed, measure()});
  }
  // After a call that took no more than expected, which counts as taken until the next settle().
  // False: that is not all held, so settle.
  bool complete(const Call& call);

  std::uint64_t held_bytes();
  // Whether more was found than the tenant may have.
  bool is_beyond_quota();

 private:
  struct Measurement {
    std::uint64_t number = 0;
    std::uint64_t completed = 0;  // of completed_, before it
    std::optional<Reading> reading;
  };
  Outcome apply(int device, const Call& call, const Measurement& measurement);
  void apply_reading(const Call& call, const Measurement& measurement) REGATTA_REQUIRES(mutex_);
  bool hold(int device, std::uint64_t target, std::uint64_t least) REGATTA_REQUIRES(mutex_);

  std::atomic<std::uint64_t> last_ = 0;
  Mutex mutex_;
  std::uint64_t begun_ REGATTA_GUARDED_BY(mutex_) = 0;
  std::uint64_t applied_ REGATTA_GUARDED_BY(mutex_) = 0;
  std::uint64_t measured_ REGATTA_GUARDED_BY(mutex_) =
      0;  // value of last_ at the applied measurement
  std::uint64_t expected_ REGATTA_GUARDED_BY(mutex_) = 0;  // by calls in progress
  std::uint64_t held_ REGATTA_GUARDED_BY(mutex_) = 0;
  std::uint64_t excess_ REGATTA_GUARDED_BY(mutex_) = 0;  // beyond the quota
  // Bytes of all calls that completed without a measurement, and those among them that one has
  // covered.
  std::atomic<std::uint64_t> completed_ = 0;
  std::uint64_t covered_ REGATTA_GUARDED_BY(mutex_) = 0;
};

// exports_graphs.cc: a launch that may take memory. It passes the launch gate as one into
// `gate_stream`.
CUresult launch_with_memory(DriverFunction<DriverEntry::cuGraphLaunch> real, CUgraphExec graph,
                            CUstream stream, CUstream gate_stream);
extern std::atomic<bool> has_graph_memory;

// exports_pools.cc: accounts for memory that pools returned to the device. `is_idle`: all work has
// been waited for.
void settle_pools(bool is_idle);
// The driver has freed an allocation of a pool, or will when its stream reaches it.
void forget_in_pool(const Allocation& allocation);

// contexts.cc: counts a context that was made without the hook's knowledge, as the runtime library
// does through a table of its own (cuGetExportTable), when it is first seen. False: it is more than
// the tenant may have. Not within an AccountingGuard of the same thread.
bool account_context(const DeviceContext& place);

// exports_shares.cc: whether this process has exported memory or opened memory of others.
extern std::atomic<bool> shares_memory;
enum class SettleMode : std::uint8_t { kAlways, kPeriodically };
// contexts.cc: accounts for memory of the current context's device that now counts for this
// process, or no longer does, because another process has it open or had it. Not within an
// AccountingGuard of the same thread.
void settle_known_shares(SettleMode when);
inline void settle_shares(SettleMode when) {
  if (shares_memory.load(std::memory_order_relaxed)) [[unlikely]]
    settle_known_shares(when);
}

}  // namespace regatta::sharing::hook
