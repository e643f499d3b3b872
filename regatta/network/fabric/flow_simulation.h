// fabric/flow_simulation.h: when flows start and end that share links max-min fair, as if each were
// a fluid: what it has of its links follows at once when another starts or ends.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/fabric/link_history.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// In seconds from the begin of the simulation; infinite: never.
struct FlowTimes {
  double start = 0;
  double sent = 0;     // all of it has left the sender
  double arrived = 0;  // the latency of its path later
};

struct FlowReport {
  std::vector<FlowTimes> flows;
  Seconds end;                        // when the last flow has arrived
  std::vector<double> bytes_of_link;  // that crossed it
  std::size_t unfinished = 0;         // flows that never arrive: no capacity was left on their path
};

// What happens to the network meanwhile.
struct NetworkChange {
  enum class Kind : std::uint8_t {
    kCapacity,  // link `which` has `capacity` from then on
    kPath,  // what path `which` was to carry takes path `other`; what is in flight goes on there
  };
  double time = 0;  // seconds
  Kind kind = Kind::kCapacity;
  std::uint32_t which = 0;
  double capacity = 0;  // bytes per second, >= 0
  std::uint32_t other = 0;
};

struct FlowOptions {
  std::span<const NetworkChange> changes;  // by time
  LinkHistory* history = nullptr;          // gets what crosses each link when
  // Called for each flow once it is sent, in the order of that; `arrived` is known then.
  std::function<void(std::uint32_t flow, const FlowTimes& times)> on_sent;
  // What would be sent within so much time is sent together: flows then end early by at most this,
  // in seconds, and by 1 % of what they take; >= 0. 0: exact.
  double resolution = 0;
};

// Sends the traffic. Fails with kInvalidInput where flows wait for each other in a cycle. The
// paths of `traffic` are among `paths`, and their links among `links`; deterministic.
Result<FlowReport> simulate_flows(const Links& links, const Paths& paths, const FlowGraph& traffic,
                                  const FlowOptions& options = {});

}  // namespace regatta::fabric
