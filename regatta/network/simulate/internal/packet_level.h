// simulate/internal/packet_level.h: simulates a workload at the packet and the mixed level,
// or as coarse packets.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/simulate/internal/coarse_packets.h"
#include "regatta/network/simulate/internal/scenario_workload.h"
#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

struct PacketRun {
  fabric::PacketReport times;
  PacketStats outcome;
};

struct PacketListeners {
  fabric::LinkHistory* history = nullptr;  // as in fabric::PacketOptions
  fabric::QueueHistory* queues = nullptr;
  std::function<void(std::uint32_t flow, const fabric::FlowTimes& times)> on_arrived;
  const std::atomic<bool>* stop = nullptr;
};

// Inside a server packets cross the links out of a device and into another, which neither pause nor
// drop. Fails with kUnsupported for paths by destination and folded rings, and with kInvalidInput
// for messages with more packets than the counters hold. Errors name the scenario's file.
Result<PacketRun> simulate_packets(const Scenario& scenario, const ScenarioWorkload& workload,
                                   const PacketListeners& listeners);

// The flow level of exchanges: without the headers, the queues and the storms that this level does
// not report.
Result<fabric::FlowReport> simulate_coarse_packets(const Scenario& scenario,
                                                   const ScenarioWorkload& workload,
                                                   const CoarsePacketPlan& plan,
                                                   const PacketListeners& listeners);

}  // namespace regatta::simulate
