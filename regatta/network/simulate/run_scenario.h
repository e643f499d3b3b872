// simulate/run_scenario.h: simulates a scenario and reports how long each item took, which links
// were busy when, and which messages were slow.
#pragma once

#include <atomic>
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
  double network_bytes = 0;  // sent over NICs
  double bound = 0;          // seconds: lower bound of time(), from the bytes of the busiest NIC
  double algbw = 0;          // bytes per second, as nccl-tests defines it; 0: no collective
  double busbw = 0;
  double time() const { return end - start; }
};

struct LinkStats {
  std::uint32_t link = 0;
  double bytes = 0;
  double mean = 0;   // share of its capacity over the whole run
  double peak = 0;   // share of its capacity in the busiest bin of the history
  double queue = 0;  // the longest, in bytes; packet and mixed level
};

struct SlowMessage {
  std::size_t operation = 0;
  std::uint32_t from = 0;  // ranks
  std::uint32_t to = 0;
  double start = 0;
  double arrived = 0;
  double bytes = 0;
  double alone = 0;  // seconds it takes when no other message uses its NICs
};

// Results of the packet and the mixed level alone.
struct PacketStats {
  std::uint64_t packets = 0;
  std::uint64_t events = 0;
  std::uint64_t marks = 0;   // marked packets
  std::uint64_t pauses = 0;  // of links
  std::uint64_t lost = 0;    // packets that found no room, or whose link failed
  std::uint64_t reordered = 0;
  std::uint32_t reorder_buffer_peak = 0;  // packets of a connection that wait for earlier ones
  std::uint32_t longest_queue_link = 0;
  double longest_queue = 0;             // bytes, at that link
  std::vector<std::uint32_t> deadlock;  // links that wait for each other for ever
  std::vector<fabric::PfcStorm> storms;
  double bound = 0;    // seconds; mixed: largest difference of a time to the packet level
  double skipped = 0;  // seconds; mixed: time without simulated packets
};

struct SimulationResult {
  Level level = Level::kFlow;
  double end = 0;                    // seconds
  std::optional<double> stopped_at;  // seconds of simulated time; SimulateOptions::stop was set
  std::size_t messages = 0;
  std::size_t unfinished = 0;
  std::vector<OperationStats> operations;
  std::vector<LinkStats> links;      // all, in order
  std::vector<SlowMessage> slowest;  // by their time relative to `alone`
  fabric::LinkHistory history{0, 2, 1};
  fabric::QueueHistory queues{0, 2, 1};  // packet and mixed level
  PortPlanSummary ports;                 // 0 where they were not planned
  std::optional<PacketStats> packets;
  // Where switches hash: tiers that hash alike, inferred from the bytes on links alone.
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
  // Called during the simulation for each message once its last connection has sent it, in that
  // order; on packets once all of it has arrived. Not called for messages that never arrive.
  std::function<void(const MessageRecord&)> on_message;
  // Called now and then with simulated seconds, messages sent, and messages in total.
  std::function<void(double, std::size_t, std::size_t)> on_progress;
  bool keeps_history = true;
  Bytes memory;  // available; a scenario that needs more is refused. 0: unknown
  // Ends the simulation early once it is true; the result holds what was simulated until then.
  const std::atomic<bool>* stop = nullptr;
};

// Fails as build_workload() and build_flow_problem() do, with kUnsupported for what the level
// cannot do. Deterministic.
Result<SimulationResult> run_scenario(const Scenario& scenario, const SimulatedNetwork& network,
                                      const SimulateOptions& options = {});

}  // namespace regatta::simulate
