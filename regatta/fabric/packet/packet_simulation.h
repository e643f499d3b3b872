// fabric/packet/packet_simulation.h: what becomes of each packet: it is sent by a NIC, waits in the
// queues of switches that store and forward, and arrives. The finest level of simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "regatta/core/result.h"
#include "regatta/core/units.h"
#include "regatta/fabric/deadlock.h"
#include "regatta/fabric/flow_simulation.h"
#include "regatta/fabric/pairs.h"
#include "regatta/fabric/routes.h"
#include "regatta/fabric/traffic.h"
#include "regatta/topo/graph.h"

namespace regatta::fabric {

struct PacketOptions {
  Bytes mtu{4096};   // of a message in one packet, at most; 1 to 65,535
  Bytes header{30};  // that each packet has beside it on the wire
  HashPolicy policy = HashPolicy::kFields;
  std::uint64_t seed = 1;  // of all that is drawn
};

// The fabric, and who sends over it: `pairs` are what flows of the traffic name as paths.
struct PacketScene {
  const topo::Graph& graph;
  const Routes& routes;
  std::span<const std::uint32_t> seeds;  // of the switches' hashes, by NodeId
  const Pairs& pairs;
};

// What a flow level says too (bytes_of_link: without headers), and what only packets know. A flow
// that has not arrived when nothing moves any more has infinite times.
struct PacketReport : FlowReport {
  std::vector<double> longest_queue;  // per link: bytes that waited for it, at most
  std::uint64_t packets = 0;          // that arrived
  std::uint64_t crossings = 0;        // of links by packets
  std::uint64_t events = 0;
  std::uint64_t expired = 0;    // packets that had crossed too many links: their routes have a loop
  std::size_t not_arrived = 0;  // flows
};

// A connection sends its messages one after the other, as fast as its NIC can: the connections of a
// NIC take turns, packet by packet. Fails with kInvalidInput where flows wait for each other in a
// circle, a number of the options is out of its range, or no way leads from one of a pair to the
// other. Deterministic for a seed.
Result<PacketReport> simulate_packets(const PacketScene& scene, const Traffic& traffic,
                                      const PacketOptions& options = {});

}  // namespace regatta::fabric
