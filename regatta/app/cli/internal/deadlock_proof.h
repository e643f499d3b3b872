// cli/internal/deadlock_proof.h: a circle of waits that `regatta fabric check` found, brought about
// packet by packet.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::cli {

struct DeadlockProof {
  std::string text;  // lines
  nlohmann::json json;
};

// The circle is one of the graph's, which is the cluster's or lacks links of it.
DeadlockProof prove_deadlock(const topo::Cluster& cluster, const topo::Graph& graph,
                             const fabric::Routes& routes, const fabric::DependencyCycle& circle);

}  // namespace regatta::cli
