// bench/healing/fault_sequence.h: one sequence of faults and repairs, of kills of the healer and of
// probers on a simulated fabric, with the real locator and healer: how much traffic between servers
// gets through with healing, beside the same sequence without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/faults/fault_suite_network.h"
#include "bench/healing/pair_shares.h"
#include "regatta/base/core/units.h"

namespace regatta {

// A time in which something does not run.
struct SequenceOutage {
  Seconds from;
  Seconds until;
  std::optional<NodeId> server;  // whose prober; none: the healer

  bool covers(Seconds now) const { return now >= from && now < until; }
};

struct FaultSequence {
  std::uint64_t seed = 1;
  Seconds lasts{24};
  bool is_busy = false;  // the servers are
  bool tells = false;    // what the locator finds and the healer does, on standard output
  std::vector<SequenceFault> faults;
  std::vector<SequenceOutage> outages;
};

// Random faults of all kinds, some of them seen by the switches' carriers, most of them repaired
// and some of those broken again; one kill of the healer and two of probers.
FaultSequence draw_fault_sequence(const FaultSuiteNetwork& network, std::uint64_t seed, int faults);

// Both directions of these cables, all at once and until the end.
FaultSequence dead_links(const std::vector<LinkId>& links, std::uint64_t seed);

struct FaultSequenceOutcome {
  Seconds longest_worse;    // the longest time in which some pair of servers lost more than without
  double most_worse = 0;    // by this share of the pair's packets, at most, in that time
  std::string worst;        // which pair, when, and the faults of that time
  double lost_with = 0;     // share of the packets between leaves while some pair loses any
  double lost_without = 0;  // the same, without healing
  int withdrawals = 0;      // events of it
};

// `network` outlives the call.
FaultSequenceOutcome run_fault_sequence(const FaultSuiteNetwork& network,
                                        const FaultSequence& sequence);

}  // namespace regatta
