// cli/internal/plan_outputs.h: what `regatta plan` writes of a GPU plan for others: a page, a
// trace, a launch script.
#pragma once

#include <cstddef>

#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/estimated_plan_metrics.h"
#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::cli {

// The references outlive the call.
struct PlanToWrite {
  const workload::Job& job;
  const topo::Cluster& cluster;
  const plan::PlanningProblem& problem;
  const plan::EstimatedPlan& plan;
  const plan::ClusterSizes* sizes = nullptr;  // that it was picked from
  std::size_t picked = 0;
};

// Before the search: where files go must be writable. kInvalidInput when not.
Status check_plan_outputs(const PlanOptions& options);

// Writes what the options ask for; whether the script was printed in place of the plan.
Result<bool> write_outputs(const PlanOptions& options, const PlanToWrite& one);

}  // namespace regatta::cli
