// fabric/internal/packet/network.h: the fabric as packets see it: flat, in whole picoseconds.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

// Fails with kInvalidInput where no way leads from one of a pair to the other.
Result<Network> make_network(const PacketScene& scene, const PacketOptions& options);

// Gives all connections their ways by these routes; what is under way keeps those before, and so
// does a connection that has none by these.
void lead_again(const PacketScene& scene, HashPolicy policy, Network& network);

}  // namespace regatta::fabric::packet
