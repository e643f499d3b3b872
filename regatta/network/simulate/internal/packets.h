// simulate/internal/packets.h: some work at the packet and the mixed level.
#pragma once

#include <cstdint>
#include <functional>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/simulate/internal/work.h"
#include "regatta/network/simulate/run.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

struct PacketRun {
  fabric::PacketReport times;
  PacketOutcome outcome;
};

struct PacketListeners {
  fabric::LinkHistory* history = nullptr;  // as in fabric::PacketOptions
  fabric::QueueHistory* queues = nullptr;
  std::function<void(std::uint32_t flow, const fabric::FlowTimes& times)> on_arrived;
};

// Inside a server packets cross the links out of a device and into another, which neither pause nor
// drop. Fails with kUnsupported for what they cannot do: ways by destination, folded rings; with
// kInvalidInput for messages of more packets than are counted. Errors name the scenario's file.
Result<PacketRun> simulate_packets(const Scenario& scenario, const Work& work,
                                   const PacketListeners& listeners);

}  // namespace regatta::simulate
