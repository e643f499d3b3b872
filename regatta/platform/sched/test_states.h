// sched/test_states.h: small clusters and jobs for tests of decisions.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"

namespace regatta::sched {

// `count` nodes of 8 devices, `leaf_nodes` below each leaf.
inline ClusterSnapshot cluster_of(int count, int leaf_nodes = 4) {
  ClusterSnapshot snapshot;
  snapshot.now = {100'000};
  for (int i = 0; i < count; ++i) {
    ClusterNode node;
    node.name = "n" + std::to_string(i);
    node.device_type = "h100";
    node.devices = 8;
    node.device_memory_mib = 80 << 10;
    node.cpu_milli = 96'000;
    node.memory_mib = 1 << 20;
    node.nics = 8;
    node.leaf = i / leaf_nodes;
    snapshot.nodes.push_back(node);
  }
  return snapshot;
}

inline JobRequest gang(const std::string& name, int replicas, int devices) {
  JobRequest job;
  job.name = name;
  Role role;
  role.name = "worker";
  role.replicas_min = role.replicas_max = replicas;
  role.devices = devices;
  job.roles = {role};
  job.run_time = {.median = {3600}, .log_spread = 0};
  job.checkpointing = {.interval = {600}, .write = {1}, .restart = {60}};
  job.submitted = {99'000};
  return job;
}

inline PendingJob pending(JobRequest job) {
  return {.request = std::move(job), .completed = {}, .evictions = 0};
}

// A job that has run since an hour before the time of `cluster_of()`, whole nodes `nodes`.
inline RunningJob running(const JobRequest& job, const std::vector<int>& nodes) {
  RunningJob made;
  made.request = job;
  made.started = {96'400};
  made.checkpointed = {99'900};
  const auto devices = static_cast<unsigned>(job.roles[0].devices);
  for (const int node : nodes)
    made.replicas.push_back({.role = 0, .node = node, .devices = (1U << devices) - 1U});
  return made;
}

inline const SchedulingAction* find_action(const SchedulingDecision& decision,
                                           const std::string& job) {
  for (const SchedulingAction& action : decision.actions)
    if (action.job == job) return &action;
  return nullptr;
}

inline std::vector<int> nodes_of(const SchedulingAction& action) {
  std::vector<int> nodes;
  for (const ReplicaPlacement& replica : action.replicas)
    nodes.push_back(replica.node);
  return nodes;
}

// The snapshot and the queue after the actions, as they are once they are carried out.
inline void apply(const SchedulingDecision& decision, ClusterSnapshot& snapshot, JobQueue& queue) {
  for (const SchedulingAction& action : decision.actions) {
    if (action.kind == ActionKind::kStart) {
      for (std::size_t i = 0; i < queue.jobs.size(); ++i) {
        if (queue.jobs[i].request.name != action.job) continue;
        snapshot.running.push_back({.request = queue.jobs[i].request,
                                    .replicas = action.replicas,
                                    .started = snapshot.now,
                                    .checkpointed = snapshot.now,
                                    .completed = queue.jobs[i].completed});
        queue.jobs.erase(queue.jobs.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
      continue;
    }
    for (std::size_t i = 0; i < snapshot.running.size(); ++i) {
      if (snapshot.running[i].request.name != action.job) continue;
      if (action.kind == ActionKind::kEvict) {
        queue.jobs.push_back(pending(snapshot.running[i].request));
        queue.jobs.back().evictions = 1;
        snapshot.running.erase(snapshot.running.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        snapshot.running[i].replicas = action.replicas;
      }
      break;
    }
  }
}

}  // namespace regatta::sched
