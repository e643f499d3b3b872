// fabric/internal/packet/traffic_parts.h: independent parts of traffic, which share no link, no NIC
// and no dependency. Each can be simulated by itself, and recurs regardless of the others.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

struct TrafficPart {
  std::vector<std::uint32_t> flows;  // their numbers in the whole
  FlowGraph traffic;
  NicPairs pairs;
  IntraServerLinks intra_server_links;
};

// At most `most` parts: the largest ones; then all others larger than one pair as one part; then
// the rest as one part. Empty where there is one part, or no flow. `network` is of the setup.
std::vector<TrafficPart> independent_parts(const PacketNetwork& network, const PacketSetup& setup,
                                           const FlowGraph& traffic, std::size_t most);

}  // namespace regatta::fabric::packet
