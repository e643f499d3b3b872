// sched/internal/service_size.h: how many replicas a service needs by the forecast of its demand.
#pragma once

#include <optional>

#include "regatta/platform/sched/job_request.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::sched {

struct ServiceSize {
  std::optional<double> forecast;  // of the demand; nothing where its history is too short for one
  int wanted = 0;                  // replicas for the forecast of now; without one the most
  int held = 0;  // the most that a forecast of the policy's service_hold asked for; at least wanted
};

// Whether the policy sizes the job by its demand.
bool follows_demand(const SchedulingPolicy& policy, const JobRequest& job);

// The job has a demand; the sizes are within replicas_min to replicas_max. They follow from the
// history alone: a decision needs to know nothing about those before it.
ServiceSize service_size(const SchedulingPolicy& policy, const JobRequest& job);

}  // namespace regatta::sched
