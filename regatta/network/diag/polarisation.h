// diag/polarisation.h: finds tiers of switches that hash alike, from the counters of links alone:
// the upper tier does not spread the flows that the lower tier has sorted by the same hash, so some
// links stay empty.
//
// A switch with k busy links from below carries at least k flows. If each of them chose one of m
// uplinks at random, all would use only e of them with probability at most (e / m)^(k - 1) times
// the number of choices of those e; over the switches of a tier the probabilities multiply.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"

namespace regatta::diag {

struct PolarisationOptions {
  double empty_share = 0.02;     // of an even share: less counts as empty (neighbour discovery)
  double busy_share = 0.2;       // of the traffic of the busiest link from below
  double by_chance_most = 1e-6;  // findings that are likelier than this by chance are not reported
};

struct Polarisation {
  topo::NodeKind tier = topo::NodeKind::kSpine;  // the tier whose uplinks are empty...
  topo::NodeKind below = topo::NodeKind::kLeaf;  // ...because it hashes as this one does
  std::vector<std::uint32_t> empty;              // directed links upwards
  double by_chance = 1;                          // probability without a common cause
};

// `bytes` of each directed link, by fabric::number_of, over some seconds of traffic. Checks spines
// below super-spines only: traffic that enters a leaf is not sorted by a hash.
std::vector<Polarisation> find_polarisation(const topo::Graph& graph,
                                            std::span<const std::uint64_t> bytes,
                                            const PolarisationOptions& options = {});

// "spines hash as leaves do: 4 uplinks are empty, as spine0-super1; give each switch a seed of its
// own".
std::string to_string(const topo::Graph& graph, const Polarisation& found);

}  // namespace regatta::diag
