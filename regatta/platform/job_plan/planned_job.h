// job_plan/planned_job.h: the request of a training job whose plans on several sizes are known:
// gang, throughput by size, slowdown by the domains that it spans.
#pragma once

#include <array>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/planning/plan/plan_metrics.h"
#include "regatta/planning/plan/plan_search.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::job_plan {

// Time of a step of `plan` where its servers are spread evenly below a domain of each level, over
// its time below the smallest that holds them: what the busiest uplinks add, after the planner has
// placed the ranks on those servers as well as it can (plan/placement.h). 1 for each level on a
// fabric of one tier, and on CPUs or servers of several types.
std::array<double, sched::kTopologyLevels> step_slowdown(const topo::Cluster& cluster,
                                                         const plan::PlanningProblem& problem,
                                                         const plan::Plan& plan);

// The references outlive the call. `sizes` is of plan::plan_cluster_sizes() of the problem.
struct PlannedJob {
  std::string name;
  const topo::Cluster& cluster;
  const plan::PlanningProblem& problem;
  const plan::ClusterSizes& sizes;
};

// One replica for each server. It starts on the smallest size, and may grow to the largest; the
// servers of a group that exchanges in every layer (tp, cp, ep) stay below one leaf where a leaf
// holds them. The run time is that of the job's steps, where it has some. Fails with kInvalidInput
// where a server has more devices than a node may have.
Result<sched::JobRequest> planned_request(const PlannedJob& job);

}  // namespace regatta::job_plan
