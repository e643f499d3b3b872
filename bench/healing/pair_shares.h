// bench/healing/pair_shares.h: the share of packets that arrives, for the pair of servers of each
// two leaves that the leaves' routes matter most to, while parts of the fabric are broken. Pure.
#pragma once

#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/heal/internal/tables.h"
#include "regatta/network/probe/internal/simulation/simulation.h"

namespace regatta {

// A fault of a sequence.
struct SequenceFault {
  probe::SimulatedFault fault;
  bool is_carrier = false;  // the switches at both ends of the cable see it
};

// The shares that get through.
struct DeliveryState {
  std::vector<double> link;       // per directed link
  std::vector<double> node;       // per node; 0: a dead server
  std::vector<bool> has_carrier;  // per link
};

DeliveryState delivery_state(const topo::Graph& graph, std::span<const SequenceFault> faults,
                             Seconds now);

struct PairShare {
  NodeId from;  // leaves
  NodeId to;
  double share = 1;  // of their packets between switches that arrives
  double ends = 1;   // the same between the switches and the best servers at the two leaves
};

// All pairs of leaves with a path between them. `tables`: null: as designed. A switch sends nothing
// to a next hop without a carrier while it has another one, with a healer and without.
std::vector<PairShare> pair_shares(const topo::Graph& graph, const heal::FabricPaths& paths,
                                   const DeliveryState& state, const heal::Tables* tables);

}  // namespace regatta
