// sched/internal/blocking_search.h: what a pending job waits for on one device type, or on any.
#pragma once

#include <optional>

#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::sched {

struct BlockingFind {
  JobRequest job;
  BlockingSet set;                      // without its sentence and the size that would start now
  std::optional<JobRequest> startable;  // the largest smaller one that fits now
};

// `job`: a pending job on the device types that it may get, whose account is `account`.
BlockingFind find_blocking(const DecisionState& state, const JobRequest& job, int account);

}  // namespace regatta::sched
