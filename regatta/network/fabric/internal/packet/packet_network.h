// fabric/internal/packet/packet_network.h: the fabric as packets see it: flat, in whole
// picoseconds.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

// Fails with kInvalidInput where no path joins the NICs of a pair.
Result<PacketNetwork> make_packet_network(const PacketSetup& setup, const PacketOptions& options);

// Gives all connections their paths by these routes. Packets in flight keep their old paths, and so
// do connections without a path by these routes.
void update_paths(const PacketSetup& setup, HashPolicy policy, PacketNetwork& network);

}  // namespace regatta::fabric::packet
