// bench/healing/fault_sequence.h: one random sequence of faults and repairs, of kills of the healer
// and of lost reports on a simulated fabric, with the real locator and healer: how much traffic
// between leaves gets through with healing, beside the same sequence without it.
#pragma once

#include <cstdint>
#include <string>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/probe/matrix.h"

namespace regatta {

struct FaultSequenceOptions {
  std::uint64_t seed = 1;
  int faults = 4;
  Seconds lasts{40};
  bool is_busy = false;  // the servers are
  bool kills = true;     // of the healer; and reports of two servers are lost
};

struct FaultSequenceOutcome {
  Seconds longest_worse;    // the longest time in which some pair of leaves lost more than without
  double most_worse = 0;    // by this share of a pair's packets, at most
  std::string worst;        // which pair, when, and the faults of that time
  double lost_with = 0;     // share of the packets between leaves while some pair loses any
  double lost_without = 0;  // the same, without healing
  int withdrawals = 0;      // events of it
};

// A network of bench/faults/clusters and its probes; they outlive the call.
FaultSequenceOutcome run_fault_sequence(const topo::Graph& graph, const probe::Matrix& matrix,
                                        const probe::Coverage& coverage,
                                        const FaultSequenceOptions& options);

}  // namespace regatta
