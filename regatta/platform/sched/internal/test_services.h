// sched/internal/test_services.h: services with a demand, for the tests of their sizes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {

inline constexpr int kHour = 60;  // intervals of a history

inline SchedulingPolicy sizing_policy() {
  SchedulingPolicy policy = *find_scheduling_policy("regatta");
  policy.protected_run_time = {};
  return policy;
}

// Replicas of one device, each for a demand of 50.
inline JobRequest service(const std::string& name, int least, int most,
                          std::vector<double> history) {
  JobRequest job = gang(name, least, 1);
  job.roles[0].replicas_max = most;
  job.job_class = JobClass::kTidal;
  job.priority = 5;
  job.is_preemptible = false;
  job.run_time = {};
  job.checkpointing = {};
  job.demand = ServiceDemand{.interval = {60}, .history = std::move(history), .per_replica = 50};
  return job;
}

inline std::vector<double> steady_history(double value, int intervals) {
  return std::vector<double>(as_index(intervals), value);
}

inline std::vector<double> falling_history(double before, double after, int intervals_after) {
  std::vector<double> history = steady_history(before, 8 * kHour);
  history.insert(history.end(), as_index(intervals_after), after);
  return history;
}

// Devices of the job by node.
inline RunningJob on_devices(JobRequest job, const std::vector<std::pair<int, int>>& devices) {
  RunningJob made = running(job, {});
  for (const auto& [node, device] : devices)
    made.replicas.push_back({.role = 0, .node = node, .devices = 1U << device});
  return made;
}

inline SchedulingDecision decided(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                  const SchedulingPolicy& policy = sizing_policy()) {
  auto decision = decide(snapshot, queue, policy);
  EXPECT_TRUE(decision) << decision.error().message;
  return decision ? *decision : SchedulingDecision{};
}

}  // namespace regatta::sched
