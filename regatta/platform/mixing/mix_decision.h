// mixing/mix_decision.h: in which of four ways workloads share one device, as settings that
// `regatta gpu` carries out. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/slice.h"
#include "regatta/platform/mixing/device_assignment.h"
#include "regatta/platform/mixing/duty_profile.h"
#include "regatta/platform/mixing/mixed_workload.h"

namespace regatta::mixing {

// The cost of a mode over the series, in device intervals.
struct ModeCost {
  MixMode mode = MixMode::kShared;
  std::string obstacle;     // why the mode cannot be; empty: it can
  double lost = 0;          // work that its interval has no room for, swaps, restarts
  double missed = 0;        // intervals of workloads that missed their latency target
  double missed_share = 0;  // the largest share of a workload's intervals with work
  double cost = 0;          // lost, and missed at its price
};

struct SliceSetting {
  std::string workload;
  sharing::GpuSlice slice;  // of GPU 0
  bool has_overcommit = false;
  Seconds lease{};                  // 0: none
  std::vector<IntervalRange> runs;  // kTidal: when it runs; otherwise empty, and it always runs
  double expected_share = 1;        // of its work that is done in its interval
};

struct MixDecision {
  MixMode mode = MixMode::kShared;
  bool is_within_budget = false;  // every missed share is at most that of the budget
  std::string policy;             // of the daemon
  std::vector<SliceSetting> slices;
  std::vector<ModeCost> modes;  // of all modes, in the order of MixMode
  std::string reason;           // one sentence
};

// The cheapest mode within the budget; where none keeps it, the one that misses least. A workload
// needs its demand, grown by interference (mixed_demand()) where others run at the same time.
// Swaps take memory / link, for what leaves and what comes. kTidal decides by the past of each
// interval alone. kInvalidInput: no workload, series of different lengths or without intervals,
// memory below 2 MiB or above the device's. kExhausted: no mode has room for the memory.
Result<MixDecision> decide_mix(std::span<const MixedWorkload> workloads,
                               const DeviceCapacity& device, const ServiceBudget& budget);

// A workload that was not measured together with the others.
struct ProfiledWorkload {
  std::string name;
  WorkloadClass load_class = WorkloadClass::kOnline;
  Bytes memory{};
  DutyProfile duty;
};

inline constexpr Seconds kDrawnInterval{300};
inline constexpr int kDrawnDays = 2;  // one to learn the day's curve from, and one more

// decide_mix() of two days of 5-minute intervals that are drawn from the profiles. The seed of a
// series is that of the workload's class, memory and profile, and of how many equal ones come
// before it: so a workload has the same series beside any others, and the order of the
// arguments decides nothing but the order of the slices. The interval of the budget is not read.
Result<MixDecision> decide_profiled_mix(std::span<const ProfiledWorkload> workloads,
                                        const DeviceCapacity& device, const ServiceBudget& budget);

// Remembers decisions of decide_profiled_mix(), which are equal with and without it. Not
// thread-safe.
class MixMemo {
 public:
  // Workloads of equal class, memory and profile are of one kind.
  int kind_of(const ProfiledWorkload& workload);
  double mean_of(int kind) const { return means_[static_cast<std::size_t>(kind)]; }
  const ProfiledWorkload& workload_of(int kind) const {
    return kinds_[static_cast<std::size_t>(kind)];
  }
  // The decision for workloads of these kinds, which rise; its slices have no names. It stays as
  // long as the memo.
  const Result<MixDecision>& decide(const std::vector<int>& kinds, const DeviceCapacity& device,
                                    const ServiceBudget& budget);
  std::size_t size() const { return decisions_.size(); }

 private:
  std::vector<ProfiledWorkload> kinds_;
  std::vector<double> means_;
  std::map<std::string, int> kind_by_bytes_;
  std::map<std::string, int> device_by_bytes_;  // and budget
  std::map<std::pair<int, std::vector<int>>, Result<MixDecision>> decisions_;
};

// Flags of `regatta gpu run` for the slice, and of `regatta gpu daemon` for the device.
std::vector<std::string> run_flags(const SliceSetting& setting);
std::vector<std::string> daemon_flags(const MixDecision& decision, const DeviceCapacity& device);

}  // namespace regatta::mixing
