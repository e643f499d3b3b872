// fabric/flow_simulation.h: when flows start and end that share links max-min fair, as if each were
// a fluid: what it has of its links follows at once when another starts or ends.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/core/result.h"
#include "regatta/core/units.h"
#include "regatta/fabric/traffic.h"

namespace regatta::fabric {

// In seconds from the begin of the simulation.
struct FlowTimes {
  double start = 0;
  double sent = 0;     // all of it has left the sender
  double arrived = 0;  // the latency of its path later
};

struct FlowReport {
  std::vector<FlowTimes> flows;
  Seconds end;                        // when the last flow has arrived
  std::vector<double> bytes_of_link;  // that crossed it
};

// Sends the traffic. Only flows that share links, directly or through others, with one that starts
// or ends get new rates. Fails with kInvalidInput where flows wait for each other in a circle. The
// paths of `traffic` are among `paths`, and their links among `links`; deterministic.
Result<FlowReport> simulate_flows(const Links& links, const Paths& paths, const Traffic& traffic);

}  // namespace regatta::fabric
