// mixing/internal/mode_costs.h: plays series of demand through one mode of sharing a device.
#pragma once

#include <span>
#include <vector>

#include "regatta/platform/mixing/mix_decision.h"

namespace regatta::mixing {

struct ModeOutcome {
  ModeCost cost;
  Seconds lease{};                        // kTimeSlice: the best of a few
  std::vector<IntervalRange> low_ranges;  // kTidal
  std::vector<double> shares_done;        // of each workload's work, in its interval
};

// The series have one length of at least 1.
ModeOutcome try_mode(MixMode mode, std::span<const MixedWorkload> workloads,
                     const DeviceCapacity& device, const ServiceBudget& budget);

}  // namespace regatta::mixing
