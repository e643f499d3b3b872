// simulate/packets.h: some work at the packet and the mixed level.
#pragma once

#include "regatta/core/result.h"
#include "regatta/fabric/packet/packet_simulation.h"
#include "regatta/simulate/run.h"
#include "regatta/simulate/scenario.h"
#include "regatta/simulate/work.h"

namespace regatta::simulate {

struct PacketRun {
  fabric::PacketReport times;
  PacketOutcome outcome;
};

// Inside a server messages take no time at these levels. Fails with kUnsupported for what they
// cannot do: ways by destination, folded rings.
Result<PacketRun> simulate_packets(const Scenario& scenario, const Work& work);

}  // namespace regatta::simulate
