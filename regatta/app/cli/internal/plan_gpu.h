// cli/internal/plan_gpu.h: `regatta plan` for clusters of GPUs: plans in closed form, under a
// software stack.
#pragma once

#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"

namespace regatta::cli {

// Threads that a search on this machine uses.
int search_threads();

// Prints the plans, or with --exact the strategy of the job as it stands. The exit status.
int show_gpu_plans(const PlanOptions& options, const workload::Job& job,
                   const topo::Cluster& cluster);

}  // namespace regatta::cli
