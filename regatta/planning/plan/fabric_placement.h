// plan/fabric_placement.h: which servers take the ranks of a strategy on a real fabric: of any
// servers that are left of a cluster, so that the busiest uplink of a leaf or a group holds the
// step up least. Slots, links and what is assumed of them: plan/internal/placement_problem.h; how:
// placement_search.h.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/internal/placement_problem.h"
#include "regatta/planning/plan/simulated_plan.h"
#include "regatta/planning/plan/strategy_traffic.h"

namespace regatta::plan {

// The references outlive the call.
struct FabricPlacementInput {
  const topo::Cluster& cluster;
  const workload::Strategy& strategy;
  const StrategyTraffic& traffic;
  std::vector<ServerId> servers;  // that may be used, in any order; more than needed is fine
  double network_efficiency = 1;  // share of the rate of links that is reached
  unsigned seed = 1;
};

// Connections between servers, of all axes; an exchange counts one for each server of it.
struct Crossings {
  int connections = 0;
  int leaves = 0;  // of them, between leaves
  int groups = 0;  // of those, between groups
};

struct FabricPlacement {
  Placement device_of_rank;
  PlacementTime time;        // that a step waits for the network between servers
  PlacementTime rank_order;  // the same with ranks in order on the first servers
  Seconds lower_bound;       // no placement takes less
  Crossings crossings;
  Crossings rank_order_crossings;
  std::string sentence;  // "tp within servers, dp within leaves, pp across leaves; 3 of 128 ..."
  long long evaluations = 0;  // changes that were tried
};

// Servers `names`, or all of the cluster but those. Fail with kInvalidInput for a name that is none
// or comes twice.
Result<std::vector<ServerId>> servers_named(const topo::Cluster& cluster,
                                            const std::vector<std::string>& names);
Result<std::vector<ServerId>> servers_without(const topo::Cluster& cluster,
                                              const std::vector<std::string>& names);

// Never slower than rank order; the same for the same seed. Fails with kInvalidInput where the
// servers are too few, come twice or are not of one type, and where the strategy's ranks do not
// fill whole servers.
Result<FabricPlacement> place_on_fabric(const FabricPlacementInput& input);

}  // namespace regatta::plan
