// plan/internal/placement/placement_candidates.h: which device each rank takes: the candidates of
// the search, their names, and reading them from a job.
#pragma once

#include <string>
#include <vector>

#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::plan {

// The distinct placements of `strategy` on `devices` (as many as ranks): the axes tp, dp and pp in
// every order from the innermost to the outermost, laid onto the devices in each of these orders:
// server by server; one device of every server, then the next; and both with the servers taken
// from the leaves in turn.
std::vector<Placement> candidate_placements(const topo::Cluster& cluster,
                                            const std::vector<topo::DeviceRef>& devices,
                                            const workload::Strategy& strategy);

// SimulatedPlan::placement_name: "one device", or for each axis above 1 the worst class of path
// between neighbours (of a ring, for pp of a chain) and at how many of the hops of one group it
// occurs, at most.
std::string name_placement(const topo::Cluster& cluster, const workload::Strategy& strategy,
                           const Placement& placement);

}  // namespace regatta::plan
