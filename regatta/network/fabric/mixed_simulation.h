// fabric/mixed_simulation.h: packets where things change, and what they say where nothing
// does. Each packet is simulated until all that send do so at rates that stay; then time
// fast-forwards to where the first of them is nearly done, with all queues as they are, and packets
// go on. What has come once comes again where the state is the same: pauses of an incast, steps of
// a ring. Traffic that has no link and no wait in common fast-forwards each for itself. The ideas:
// Wormhole, NSDI 2026, which fast-forwards and keeps what it simulated.
#pragma once

#include <cstdint>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric {

struct MixedOptions {
  double tolerance = 0.01;   // how far rates may be from those that are taken for them
  double most_error = 0.02;  // of a fast-forward, as a part of it: a longer bound is not worth it
  Seconds window{2e-6};      // over which they are measured at first, after a change
};

// The counts of packets, bytes and crossings hold those skipped too; queues, marks and pauses
// are those that were simulated.
struct MixedReport : PacketReport {
  Seconds bound;    // no flow's times are farther from those of the packet level
  Seconds skipped;  // of the simulated time, in the mean of the flows
  std::uint64_t fast_forwards = 0;
  std::uint64_t fast_forwards_by_max_min = 0;  // with the rates of the flow level
  std::uint64_t fast_forwards_by_recurrence =
      0;  // by what was simulated once; the others as measured
  // Periods of steps of a collective that were not simulated, for they were like one before.
  std::uint64_t cycles = 0;
};

// As simulate_packets(). It fast-forwards where packets go by the hash alone (LoadBalancing::kHash)
// and connections have no rate control; otherwise it is the packet level. Where it fast-forwards,
// flows may be told to have arrived at the end of the simulation alone. Fails as that does, and
// where an option is out of its range.
Result<MixedReport> simulate_mixed(const PacketSetup& setup, const FlowGraph& traffic,
                                   const PacketOptions& packets = {},
                                   const MixedOptions& options = {});

namespace packet {

// The same, of options that are in their range.
Result<MixedReport> run_mixed(const PacketSetup& setup, const FlowGraph& traffic,
                              const PacketOptions& packets, const MixedOptions& options);

}  // namespace packet
}  // namespace regatta::fabric
