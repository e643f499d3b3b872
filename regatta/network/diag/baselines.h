// diag/baselines.h: the verdicts of two published systems on the same probes, for comparison.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"

namespace regatta::diag {

// A probe and its answer, as counted by the sender.
struct RoundTrip {
  std::span<const std::uint32_t> there;  // directed links
  std::span<const std::uint32_t> back;
  std::uint32_t sent = 0;
  std::uint32_t lost = 0;
};

// Each flow that lost something votes for the h cables of its path with 1/h. The cable with most
// votes is blamed and its flows are removed; this repeats while the maximum is above 1 % of all
// votes. Names cables only, in both directions (kNic: of a NIC). Source: Arzani et al., "007:
// Democratically finding the cause of packet drops", NSDI 2018, algorithm 1.
std::vector<Culprit> vote_007(const topo::Graph& graph, std::span<const RoundTrip> trips);

// A pair is bad if it loses more than one probe of a thousand; a NIC, if more than half of its
// pairs are bad; a server or leaf of two or more NICs, if more than half of these are bad. Other
// losses belong to the spines, and no component is named. Source: Guo et al., "Pingmesh", SIGCOMM
// 2015, section 5, with NICs in place of servers.
std::vector<Culprit> pingmesh_threshold(const topo::Graph& graph, std::span<const RoundTrip> trips);

}  // namespace regatta::diag
