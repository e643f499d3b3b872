// simulate/run_scenario.h: simulates a scenario and says what people want to know of it: how long
// each item took, which links were busy when, which messages were slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/diag/polarisation.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/simulate/internal/port_planning.h"
#include "regatta/network/simulate/internal/scenario_workload.h"
#include "regatta/network/simulate/scenario.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::simulate {

struct OperationStats {
  std::string name;
  double start = 0;  // seconds; infinite times: never
  double end = 0;
  std::size_t messages = 0;
  double network_bytes = 0;  // that went over NICs
  double bound = 0;  // seconds: no network ends sooner, for the busiest NIC sends or gets so long
  double algbw = 0;  // bytes per second, as nccl-tests defines it; 0: no collective
  double busbw = 0;
  double time() const { return end - start; }
};

struct LinkStats {
  std::uint32_t link = 0;
  double bytes = 0;
  double mean = 0;   // share of its capacity over the whole run
  double peak = 0;   // and over the busiest bin of the history
  double queue = 0;  // bytes that waited for it at most; packet and mixed level
};

struct SlowMessage {
  std::size_t operation = 0;
  std::uint32_t from = 0;  // ranks
  std::uint32_t to = 0;
  double start = 0;
  double arrived = 0;
  double bytes = 0;
  double alone = 0;  // seconds that it would take with its NICs for itself
};

// What only the packet and the mixed level know.
struct PacketStats {
  std::uint64_t packets = 0;
  std::uint64_t events = 0;
  std::uint64_t marks = 0;   // packets that were marked
  std::uint64_t pauses = 0;  // that links asked for
  std::uint64_t lost = 0;    // packets that found no room, or whose link failed
  std::uint64_t reordered = 0;
  std::uint32_t reorder_buffer_peak = 0;  // packets of a connection, until those before them came
  std::uint32_t longest_queue_link = 0;
  double longest_queue = 0;             // bytes, there
  std::vector<std::uint32_t> deadlock;  // links that wait for each other for ever
  std::vector<fabric::PfcStorm> storms;
  double bound = 0;    // seconds; mixed: no time is farther from that of the packet level
  double skipped = 0;  // seconds; mixed: in which no packet was looked at
};

struct SimulationResult {
  Level level = Level::kFlow;
  double end = 0;  // seconds
  std::size_t messages = 0;
  std::size_t unfinished = 0;
  std::vector<OperationStats> operations;
  std::vector<LinkStats> links;      // all, in order
  std::vector<SlowMessage> slowest;  // by how many times `alone` they took
  fabric::LinkHistory history{0, 2, 1};
  fabric::QueueHistory queues{0, 2, 1};  // packet and mixed level
  PortPlanSummary ports;                 // 0 where they were not planned
  std::optional<PacketStats> packets;
  // Tiers that hash alike, where switches hash: told from the bytes on links alone.
  std::vector<diag::Polarisation> polarisation;
};

struct MessageRecord {
  std::size_t operation = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double bytes = 0;
  double start = 0;
  double arrived = 0;
};

struct SimulateOptions {
  // Called while the simulation goes on for each message (of its connections: the last one) once it
  // is sent, in that order; of packets once they all have arrived. Not of those that never do.
  std::function<void(const MessageRecord&)> on_message;
  // Called now and then: simulated seconds, messages sent and in all.
  std::function<void(double, std::size_t, std::size_t)> on_progress;
  bool keeps_history = true;
  Bytes memory;  // what there is: a scenario that takes more is refused. 0: not known
};

// Fails as build_workload() and build_flow_problem() do, with kUnsupported for what the level
// cannot do. Deterministic.
Result<SimulationResult> run_scenario(const Scenario& scenario, const SimulatedNetwork& network,
                                      const SimulateOptions& options = {});

}  // namespace regatta::simulate
