// fabric/internal/packet/packet_network.h: the fabric as packets see it: flat, in whole
// picoseconds.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

// Fails with kInvalidInput where no path leads from one of a pair to the other.
Result<PacketNetwork> make_packet_network(const PacketSetup& setup, const PacketOptions& options);

// Gives all connections their paths by these routes; what is in flight keeps those before, and so
// does a connection that has none by these.
void update_paths(const PacketSetup& setup, HashPolicy policy, PacketNetwork& network);

}  // namespace regatta::fabric::packet
