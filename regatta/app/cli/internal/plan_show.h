// cli/internal/plan_show.h: `regatta plan JOB --cluster CLUSTER`: the best plans, or a strategy as
// it stands, on any cluster.
#pragma once

#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"

namespace regatta::cli {

// Threads that a search on this machine uses.
int search_threads();

// Prints the plans, or with --exact the strategy of the job as it stands. The exit status.
int show_plans(const PlanOptions& options, const workload::Job& job, const topo::Cluster& cluster);

}  // namespace regatta::cli
