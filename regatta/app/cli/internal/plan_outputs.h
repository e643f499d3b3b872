// cli/internal/plan_outputs.h: what `regatta plan` writes of a plan for others: a page, a
// trace, a launch script.
#pragma once

#include <cstddef>

#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/plan_metrics.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::cli {

// The references outlive the call.
struct PlanToWrite {
  const workload::Job& job;
  const topo::Cluster& cluster;
  const plan::PlanningProblem& problem;
  const plan::Plan& plan;
  const plan::ClusterSizes* sizes = nullptr;  // that it was picked from
  std::size_t picked = 0;
};

// Before the search: where files go must be writable. kInvalidInput when not.
Status check_plan_outputs(const PlanOptions& options);

// Binds the search to what the framework of --launch can run, where it is given. kUnsupported where
// that is not the model, the precision or a value of the request.
Status bind_to_launcher(const PlanOptions& options, plan::PlanningProblem& problem);

// `error` of a search, with what --launch bound it to.
Error with_launch_bounds(const PlanOptions& options, const plan::PlanningProblem& problem,
                         Error error);

// Writes what the options ask for; whether the script was printed in place of the plan.
Result<bool> write_outputs(const PlanOptions& options, const PlanToWrite& one);

}  // namespace regatta::cli
