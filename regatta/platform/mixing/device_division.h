// mixing/device_division.h: what each of the workloads on a device gets of it in one interval, by
// the mode in which they share it. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/mixing/mixed_workload.h"

namespace regatta::mixing {

// The need of a workload for a device in an interval.
struct DeviceDemand {
  double share = 0;  // of the whole device where it has it alone; 0: it has nothing to do
  bool has_target = false;
  Bytes memory{};
};

struct DivisionRule {
  MixMode mode = MixMode::kShared;
  double interference = 0;  // interference.h
  // kTimeSlice alone:
  Seconds interval{60};
  Seconds lease{60};
  BytesPerSecond link{25e9};  // over which memory is swapped, each way
  bool is_swapped = false;    // not all memory fits in the device together
};

struct DeviceDivision {
  std::vector<double> served;  // of the demand of each, 0 to 1; 1 where it has none
  std::vector<bool> is_met;    // all of it, within the latency target where there is one
  double swapped = 0;          // share of the interval that moving memory takes
};

// Divides devices; it keeps its memory, so that no interval allocates any.
class DeviceDivider {
 public:
  // kShared: each in proportion to its need, and what one does not need goes to the others.
  // kPreemptive: those with a target first. kTimeSlice: equal turns, one at a time, without
  // interference; each change of turns moves memory, and nobody with a target can wait for the turn
  // of another. kTidal: as kPreemptive among those that run now: give the others a share of 0.
  // `resident` is the one whose memory is in the device with kTimeSlice, -1: none; it is brought up
  // to date. The result holds until the next call.
  const DeviceDivision& divide(std::span<const DeviceDemand> demands, const DivisionRule& rule,
                               int& resident);

 private:
  void divide_together(std::span<const DeviceDemand> demands, const DivisionRule& rule);
  void divide_turns(std::span<const DeviceDemand> demands, const DivisionRule& rule, int& resident);
  void book();

  DeviceDivision division_;
  std::vector<double> needs_;  // grown by what the others occupy
  std::vector<double> weights_;
  std::vector<double> got_;
  std::vector<double> part_;  // needs of those with a target, then of the rest
  std::vector<double> rest_;
  std::vector<std::size_t> hungry_;
};

// Divides `capacity` by weight; what one does not need goes to the others. Source: max-min
// fairness, Bertsekas and Gallager, Data Networks, 6.5.2.
std::vector<double> divide_by_weight(std::span<const double> needs, std::span<const double> weights,
                                     double capacity);

}  // namespace regatta::mixing
