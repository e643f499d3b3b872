// simulate/internal/scenario_workload.h: the traffic of a scenario, as flows between ranks with
// dependencies: the same for every level of simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/simulate/internal/rank_classes.h"
#include "regatta/network/simulate/scenario.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::simulate {

// Paths of ScenarioWorkload::traffic: a pair, or one of these.
inline constexpr std::uint32_t kNothing = ~0U;           // no bytes: a pause, or a join
inline constexpr std::uint32_t kRingBit = 1U << 31U;     // and the number of a ring
inline constexpr std::uint32_t kBundleBits = 3U << 30U;  // and the number of a bundle

inline bool is_bundle(std::uint32_t path) {
  return path != kNothing && (path & kBundleBits) == kBundleBits;
}
inline bool is_ring(std::uint32_t path) {
  return (path & kBundleBits) == kRingBit;
}

struct EndpointPair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

// The messages from each rank of a group to each of another one, or of the same: those inside
// servers, or the others. All move alike (bundles.h).
struct Bundle {
  std::uint32_t from = 0;  // in ScenarioWorkload::rank_classes
  std::uint32_t to = 0;
  bool is_inside = false;
  std::uint64_t messages = 0;
  // Messages of each sending NIC, or inside servers of each sender; and the same for receivers.
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;
};

// One item of the scenario: its flows are [first, last).
struct ScenarioOperation {
  std::string name;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  Bytes bytes;            // of one call, as nccl-tests counts them; 0: no collective
  double bus_factor = 0;  // busbw / algbw, as nccl-tests defines them; 0: no collective
  int repeat = 1;
};

struct ScenarioWorkload {
  explicit ScenarioWorkload(const SimulatedNetwork& network, std::uint32_t connections);

  // The number of a pair of ranks, the same for the same two. Fails where one has no NIC.
  Result<std::uint32_t> pair(std::uint32_t from, std::uint32_t to);
  // After an error of pair(), the traffic is invalid.
  std::uint32_t pair_or_fail(std::uint32_t from, std::uint32_t to);
  // Messages of a flow over this path: 0 for a pause or a ring, 1 for a pair.
  std::uint64_t messages_of(std::uint32_t path) const {
    if (is_bundle(path)) return bundles[path & ~kBundleBits].messages;
    return path < kRingBit ? 1 : 0;
  }
  // Which operation a flow belongs to; flows of none join others.
  std::size_t operation_of(std::uint32_t flow) const;
  // A flow that takes `time`, without bytes.
  std::uint32_t add_pause(Seconds time) { return traffic.add(kNothing, {0}, time); }

  const SimulatedNetwork& network;
  fabric::NicPairs pairs;              // with the same NIC twice: inside a server
  std::vector<EndpointPair> ranks_of;  // per pair
  // Some collective is an exchange: its ranks send to one peer after the other (coarse_packets.h).
  bool has_exchanges = false;
  // Whether the sender of a pair sends to the next rank what switches hold back of this one.
  std::vector<bool> sends_ahead;                  // per pair; shorter: not
  std::vector<std::vector<std::uint32_t>> rings;  // pairs that move alike
  RankClasses rank_classes;                       // of those that send in bundles
  std::vector<Bundle> bundles;
  fabric::FlowGraph traffic;
  std::vector<ScenarioOperation> operations;
  Status status;  // the first error of pair_or_fail()

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

// Fails with kInvalidInput naming the scenario's file and line where the cluster lacks a device or
// link that it names, or where it needs more than `memory` (0: no limit).
Result<ScenarioWorkload> build_workload(const Scenario& scenario, const SimulatedNetwork& network,
                                        Bytes memory = {});

}  // namespace regatta::simulate
