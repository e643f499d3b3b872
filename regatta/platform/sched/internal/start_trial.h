// sched/internal/start_trial.h: whether a pending job would start alone once some running jobs have
// ended: by the quotas, the places and the spares of decide(), device by device.
#pragma once

#include <optional>
#include <set>

#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/slice_placement.h"

namespace regatta::sched {

// The state outlives it. Not thread-safe.
class StartTrial {
 public:
  // `account`: of the pending job in the usage of the state.
  StartTrial(const DecisionState& state, int account);

  // Where the job would run without the running jobs `gone`, by index, if no other one waited;
  // nothing where it would not start. It shares no device.
  std::optional<GangPlacement> place(const JobRequest& job, const std::set<int>& gone);
  // Whether an empty cluster would hold the job if all its nodes were ready.
  bool fits_repaired(const JobRequest& job) const;
  // The part of what the replicas take that is not free now: compute where a device has less than
  // its share, and what the nodes lack of the rest.
  ResourceAmounts missing_for(const JobRequest& job, const GangPlacement& placement) const;

 private:
  FreeCapacity free_without(const std::set<int>& gone) const;

  const DecisionState& state_;
  int account_ = 0;
  SlicePlacement slices_;
};

}  // namespace regatta::sched
