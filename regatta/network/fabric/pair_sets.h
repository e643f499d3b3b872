// fabric/pair_sets.h: who sends to whom in the patterns that planning and simulation start from,
// and from a file of pairs (docs/formats/pairs.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/pairs.h"

namespace regatta::fabric {

// Each server to the next one, the last one to the first, by all NICs that both have: ring of each
// rail.
NicPairs ring_pairs(const topo::Cluster& cluster, const topo::Graph& graph,
                    std::uint32_t connections);

// Each server to another one that nobody else sends to, drawn anew for each NIC; servers have the
// same NICs as the first one, or do not take part.
NicPairs permutation_pairs(const topo::Cluster& cluster, const topo::Graph& graph,
                           std::uint32_t connections, std::uint64_t seed);

// The pairs of `text`, a line each: two NICs like s0.nic1. Fails with kInvalidInput naming `file`,
// line and remedy.
Result<NicPairs> parse_pairs(const topo::Cluster& cluster, const topo::Graph& graph,
                             std::uint32_t connections, std::string_view text,
                             const std::string& file);

// "s0.nic1" for the link of a NIC.
std::string nic_name(const topo::Graph& graph, LinkId nic);

}  // namespace regatta::fabric
