// fabric/internal/packet/traffic_parts.h: traffic in parts that have nothing to do with each other:
// no link, no NIC and no wait in common. Each can be simulated by itself, and what recurs in one
// does so whatever the others do.
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

// At most so many: the largest by themselves, then all others that are larger than one pair, then
// those together; empty where there is only one, or no flow. `network` is that of the setup.
std::vector<TrafficPart> independent_parts(const PacketNetwork& network, const PacketSetup& setup,
                                           const FlowGraph& traffic, std::size_t most);

}  // namespace regatta::fabric::packet
