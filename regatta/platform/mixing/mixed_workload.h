// mixing/mixed_workload.h: what a workload takes of a GPU over time, and the GPU that it would
// share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::mixing {

// Demand of an interval in which the workload does not exist. All others are 0 to 1.
inline constexpr float kAbsent = -1;

enum class WorkloadClass {
  kOnline,        // has a latency target
  kBatch,         // takes all that it gets, and may wait
  kIntermittent,  // works now and then, and may wait
  kTidal          // has a latency target, and a day with high and low hours
};

// The ways in which workloads share a device.
enum class MixMode {
  kShared,      // all at once, each with a quota; what others leave is free to take
  kPreemptive,  // work with a latency target first, the rest gets what it leaves
  kTimeSlice,   // one at a time has the device alone; memory of the others goes to the host
  kTidal        // work without a target runs only in hours in which little else is expected
};

// The shapes of GPU use that Baidu describes for its Baige platform, and none of them.
enum class DutyPattern { kLowAverage, kPeakValley, kShortSpike, kPeriodic, kSteady };

struct MixedWorkload {
  std::string name;
  WorkloadClass load_class = WorkloadClass::kOnline;
  Bytes memory{};
  // Share of a whole device in each interval, as measured alone, or kAbsent.
  std::vector<float> demand;
};

struct DeviceCapacity {
  Bytes memory{80LL << 30};
  Bytes host_memory{};         // for memory that is swapped out; 0: there is no over-commit
  BytesPerSecond link{25e9};   // between host and device, each way
  double interference = 0.15;  // interference.h
};

// One budget for all modes.
struct ServiceBudget {
  double missed_share = 0.01;  // of the intervals of each device in use, as the largest share
  double missed_price = 20;    // device intervals that one missed interval of a workload is worth
  Seconds interval{60};        // of the series of demand
  Seconds reclaim_lead{120};   // checkpoint of the batch work and restart of the service
  // Work with a latency target goes before all other work, whatever profiles promise: kShared is no
  // mode for both.
  bool targets_first = false;
};

bool has_latency_target(WorkloadClass load_class);

// Interval averages decide: at least 12 present ones, else kLowAverage. `interval` is their length.
// kShortSpike: the highest 0.5 % are at least 0.8, the mean is below 0.5.
// kPeakValley: over at least 6 hours, the mean of the highest hour is at least 0.08 and four times
// that of the lowest. kPeriodic: the autocorrelation at some lag from 4 to 60 intervals is at least
// 0.5, more than at half of that lag. kSteady: the mean is at least 0.5.
DutyPattern find_duty_pattern(std::span<const float> demand, Seconds interval);

// The class of a workload of which nothing else is known.
WorkloadClass class_of_pattern(DutyPattern pattern);

const char* name_of(DutyPattern pattern);
const char* name_of(WorkloadClass load_class);
const char* name_of(MixMode mode);

}  // namespace regatta::mixing
