// cli/internal/plan_sizes.h: `regatta plan JOB --cluster CLUSTER --sizes`: the best plan on several
// numbers of servers, what the job uses there, and which one an objective picks.
#pragma once

#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::cli {

// Prints the sizes, and writes what the options ask for of the plan that is picked. The exit
// status.
int show_sizes(const PlanOptions& options, const workload::Job& job, const topo::Cluster& cluster,
               const plan::PlanningProblem& problem);

}  // namespace regatta::cli
