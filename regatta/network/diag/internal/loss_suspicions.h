// diag/internal/loss_suspicions.h: which link or switch the connections that retransmit have in
// common, beyond those that do not: losses that probes cannot see, such as those of some ports or
// of TCP alone. Pure.
//
// Congestion is no reason for a suspicion: it hits every connection of a link alike, whatever its
// ports. So connections of other ports over the same link have to be clean. Where all of a link's
// connections retransmit, most of their segments have to, while they leave the link half empty.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::diag {

// Segments that a connection sent in the last seconds.
struct ConnectionLoss {
  fabric::FiveTuple flow;
  std::vector<std::uint32_t> links;  // directed: the first `there` lead there, the others back
  std::size_t there = 0;
  std::uint32_t segments = 0;  // including retransmits
  std::uint32_t again = 0;     // at most `segments`
};

enum class PortSide : std::uint8_t {
  kAny,          // ports do not tell the connections apart
  kSource,       // of the end that retransmits
  kDestination,  // of the other end
};

// No verdict: probes have seen nothing.
struct LossSuspicion {
  Culprit culprit;                    // a cable, one direction of it, or a switch
  std::vector<Culprit> alternatives;  // that explain it nearly as well
  PortSide side = PortSide::kAny;
  std::uint16_t first_port = 0;  // of `side`: those of the connections that retransmit lie between
  std::uint16_t last_port = 0;
  std::uint32_t connections = 0;  // of these ports over the culprit
  std::uint32_t connections_hit = 0;
  std::uint64_t segments = 0;
  std::uint64_t again = 0;
  std::uint32_t other_connections = 0;  // all others
  std::uint64_t other_segments = 0;
  std::uint64_t other_again = 0;
  double confidence = 0;  // probability of the culprit or an alternative, at most 0.95
};

// `span`: in which the connections were counted. At most one suspicion: the likeliest.
std::optional<LossSuspicion> suspect(const topo::Graph& graph,
                                     std::span<const ConnectionLoss> connections, Seconds span);

// "connections to ports 5000 to 5063 over link leaf0-spine1, both ways: 14 of 14 sent 83 of 90
// segments again, of 120 others 3 of 9120; confidence 0.93".
std::string to_string(const topo::Graph& graph, const LossSuspicion& suspicion);

}  // namespace regatta::diag
