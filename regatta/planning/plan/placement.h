// plan/placement.h: the servers that get the ranks of a strategy on a fabric, and the score of a
// placement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/internal/placement/placement_problem.h"
#include "regatta/planning/plan/plan_search.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::plan {

// Places the ranks of a strategy on some of the available servers, so that the step waits least for
// the busiest uplink of a leaf or a group. The model of slots and links:
// plan/internal/placement/placement_problem.h; the search: placement_search.h.

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

// The servers of the cluster without `names`. Fails with kInvalidInput for a name that is no server
// or comes twice.
Result<std::vector<ServerId>> servers_without(const topo::Cluster& cluster,
                                              const std::vector<std::string>& names);

// Never slower than rank order; the same for the same seed. Fails with kInvalidInput where the
// servers are too few, come twice or are not of one type, and where the strategy's ranks do not
// fill whole servers.
Result<FabricPlacement> place_on_fabric(const FabricPlacementInput& input);

// The positions of the groups of a placement on the fabric, independent of their traffic: it
// decides between placements of equal predicted time, and a scheduler may compare placements by it
// (fabric/port_plan.h).

struct ConcurrentSendsScore {
  std::string name;  // "data-parallel rings", as workload/strategy.h has it
  fabric::HopScore hops;
};

struct PlacementScore {
  std::vector<ConcurrentSendsScore> sets;
  fabric::HopScore all;  // hops of all sets; links and collisions are those of each set, added up
};

// Ranks that share sequences (cp) count as data-parallel.
PlacementScore score_placement(const topo::Cluster& cluster, const workload::ModelShape& model,
                               const workload::Strategy& strategy, const Placement& placement);

// "data-parallel rings: 96 % of 128 hops within an aggregation group, 75 % below one leaf, 3.1 of
// them meet on an uplink by chance", a line for each set; "" for one rank.
std::string score_text(const topo::Cluster& cluster, const PlacementScore& score);
nlohmann::json score_json(const PlacementScore& score);

struct ScoredPlacement {
  FabricPlacement placement;
  PlacementScore score;
};

// The ranks of a plan on the servers without `names`. Nothing where the fabric has one tier, so
// that the placement does not matter, where the plan itself says where its ranks go, and where
// servers_without() or place_on_fabric() fails.
std::optional<ScoredPlacement> place_plan(const topo::Cluster& cluster,
                                          const PlanningProblem& problem,
                                          const workload::Strategy& strategy,
                                          const std::vector<std::string>& names);

}  // namespace regatta::plan
