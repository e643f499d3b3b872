// mixing/device_assignment.h: which workloads share a device, so that few devices suffice and few
// intervals need more than a device has. Decided on a past range of intervals, judged on any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/mixing/mixed_workload.h"

namespace regatta::mixing {

// Intervals `first` to `last` - 1.
struct IntervalRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

// The use of devices in a range of intervals. A device counts while a workload on it exists.
struct MixingUse {
  double device_intervals = 0;
  double workload_intervals = 0;
  double above_share = 0;    // of the device intervals: all demand together exceeds the capacity
  double missed_share = 0;   // of the intervals of workloads with a latency target: theirs does
  double delayed_share = 0;  // of the work without a target: not done in its interval
  int most_devices = 0;      // at one time
  int moves = 0;             // workloads that went to another device

  double workloads_per_device() const {
    return device_intervals > 0 ? workload_intervals / device_intervals : 0;
  }
};

// The device of each workload: first fit, in decreasing order, of the sum of the workloads' own
// percentiles (0 to 1) in the range. A workload that the range does not hold gets 1.
std::vector<int> assign_by_percentile(std::span<const MixedWorkload> workloads, IntervalRange past,
                                      double percentile, const DeviceCapacity& device);

// The device of each workload, for the least number of devices with which the joint series of the
// range is above capacity in at most `missed_share` of the device intervals. The price of a missed
// interval is searched for. A workload that the range does not hold is taken for a random one.
// kInvalidInput for an empty range, or series of another length.
Result<std::vector<int>> assign_jointly(std::span<const MixedWorkload> workloads,
                                        IntervalRange past, const DeviceCapacity& device,
                                        const ServiceBudget& budget, std::uint64_t seed);

// Capacity is that of a mixed device (mixed_demand()).
MixingUse judge_assignment(std::span<const MixedWorkload> workloads, std::span<const int> homes,
                           IntervalRange range, const DeviceCapacity& device);

struct ElasticOptions {
  int every = 3;             // intervals between decisions
  int samples = 512;         // of the distribution of a workload's demand
  int histories = 100;       // most like a workload's own, that tell what its demand may be next
  int move_intervals = 1;    // that a move takes: the workload needs its old device, and has both
  double move_price = 0.05;  // of a workload that goes to another device, in devices
  // Workloads with short spikes so far may wait: they have no latency target.
  bool spikes_may_wait = false;
  // An oracle, as a limit: the next intervals themselves are the samples.
  bool has_hindsight = false;
  std::uint64_t seed = 1;
};

// Decides anew every few intervals of the range, from earlier intervals alone. A device's missed
// interval has one price for all devices and times, so that the budget goes to where it saves most;
// the price rises with the share that was missed in the range so far, as far as that is above the
// budget. Where spikes may wait, each workload's missed interval has that price. kInvalidInput for
// options out of range (at least 1; moves at least 0 and less than `every`), an empty range, or one
// that begins within the first 60 intervals, of which nothing is known.
Result<MixingUse> replay_elastic(std::span<const MixedWorkload> workloads, IntervalRange range,
                                 const ElasticOptions& options, const DeviceCapacity& device,
                                 const ServiceBudget& budget);

// Workload intervals over the device intervals that any placement needs, if all demand of an
// interval could be cut to fit: 1 % of the fullest minutes left out where `share` is 0.01. One
// number of devices for the whole range, or a new one in each interval.
double most_workloads_per_device(std::span<const MixedWorkload> workloads, IntervalRange range,
                                 double share, bool is_elastic);

}  // namespace regatta::mixing
