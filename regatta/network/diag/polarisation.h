// diag/polarisation.h: finds tiers of switches that hash alike, from the counters of links alone:
// what the lower tier has sorted by its hash, the upper one does not spread any more, and links
// stay empty for ever.
//
// A switch that has k busy links from below carries at least k flows. Were each of them to choose
// one of m uplinks by chance, all would meet on e of them with probability (e / m)^(k - 1) times
// the choices of those e; over the switches of a tier the probabilities multiply.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"

namespace regatta::diag {

struct PolarisationOptions {
  double empty_share = 0.02;  // of an even share: less is as good as nothing (neighbour discovery)
  double busy_share = 0.2;    // of what the busiest link from below brings
  double by_chance_most = 1e-6;  // more likely than that by chance is told as nothing
};

struct Polarisation {
  topo::NodeKind tier = topo::NodeKind::kSpine;  // whose uplinks are empty...
  topo::NodeKind below = topo::NodeKind::kLeaf;  // ...because it hashes as this one does
  std::vector<std::uint32_t> empty;              // directed links upwards
  double by_chance = 1;                          // how likely without a common cause
};

// `bytes` of each directed link, by fabric::number_of, over some seconds of traffic. Looks at
// spines below super-spines: nothing sorts what comes to a leaf.
std::vector<Polarisation> find_polarisation(const topo::Graph& graph,
                                            std::span<const std::uint64_t> bytes,
                                            const PolarisationOptions& options = {});

// "spines hash as leaves do: 4 uplinks are empty, as spine0-super1; give each switch a seed of its
// own".
std::string to_string(const topo::Graph& graph, const Polarisation& found);

}  // namespace regatta::diag
