// fabric/deadlock_witness.h: traffic that makes a cycle of waits (deadlock.h) come true: sent
// packet by packet, it stops for good. That a cycle is possible does not say that it closes; this
// shows it.
#pragma once

#include <cstdint>
#include <span>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {

struct DeadlockWitness {
  DependencyCycle deadlock;  // links that wait for each other for ever; empty: it did not close
  Seconds quiescent_at;      // nothing moved any more
  std::size_t messages = 0;  // that were sent
  std::size_t arrived = 0;   // of these
  Bytes bytes;               // of each
};

// For each wait of the cycle, from as many NICs as are found, messages that come over its link and
// go on over the next one; more of them until they stop. `seeds`: of the switches' hashes, by
// NodeId. Deterministic. Fails with kNotFound where no traffic goes over some wait.
Result<DeadlockWitness> find_deadlock_witness(const topo::Graph& graph, const Routes& routes,
                                              std::span<const std::uint32_t> seeds,
                                              const DependencyCycle& cycle);

}  // namespace regatta::fabric
