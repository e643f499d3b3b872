// plan/placement_score.h: how the groups of a placement lie on the fabric, whatever they send: what
// decides between placements that are predicted to be equally fast, and what a scheduler may
// compare placements by (fabric/group_score.h).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/network/fabric/group_score.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::plan {

struct ConcurrentSendsScore {
  std::string name;  // "data-parallel rings", as workload/concurrent_sends.h has it
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

}  // namespace regatta::plan
