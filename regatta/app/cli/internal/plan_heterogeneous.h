// cli/internal/plan_heterogeneous.h: `regatta plan` for clusters whose servers are of several
// types.
#pragma once

#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"

namespace regatta::cli {

bool has_heterogeneous_servers(const topo::Cluster& cluster);

// Prints the fastest plans and how they split layers and micro-batches. The exit status.
int show_heterogeneous_plans(const PlanOptions& options, const workload::Job& job,
                             const topo::Cluster& cluster, const cost::SoftwareStack& stack);

}  // namespace regatta::cli
