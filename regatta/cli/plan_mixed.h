// cli/plan_mixed.h: `regatta plan` for clusters whose servers are of several types.
#pragma once

#include "regatta/cli/plan_options.h"
#include "regatta/cost/stack.h"
#include "regatta/topo/cluster.h"
#include "regatta/workload/job.h"

namespace regatta::cli {

bool has_mixed_servers(const topo::Cluster& cluster);

// Prints the fastest plans and how they split layers and micro-batches. The exit status.
int show_mixed_plans(const PlanOptions& options, const workload::Job& job,
                     const topo::Cluster& cluster, const cost::Stack& stack);

}  // namespace regatta::cli
