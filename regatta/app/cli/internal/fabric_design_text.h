// cli/internal/fabric_design_text.h: what a designed fabric is made of and carries, for people and
// for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/fabric_summary.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/design.h"

namespace regatta::cli {

// A design with what its graph says of it.
struct FabricDesignResult {
  fabric::Design design;
  topo::Cluster cluster;
  topo::Graph graph;
  topo::FabricSummary summary;
};

void print_design(const FabricDesignResult& drawn);

// The keys of docs/formats/fabric_design.md.
nlohmann::json design_json(const FabricDesignResult& drawn);

}  // namespace regatta::cli
