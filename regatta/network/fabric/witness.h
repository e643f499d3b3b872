// fabric/witness.h: traffic that makes a circle of waits (deadlock.h) come true: sent packet
// by packet, it stops for good. That a circle is possible does not say that it closes; this shows
// it.
#pragma once

#include <cstdint>
#include <span>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {

struct Witness {
  Circle deadlock;           // links that wait for each other for ever; empty: it did not close
  Seconds still;             // nothing moved any more
  std::size_t messages = 0;  // that were sent
  std::size_t arrived = 0;   // of these
  Bytes bytes;               // of each
};

// For each wait of the circle, from as many NICs as are found, messages that come over its link and
// go on over the next one; more of them until they stop. `seeds`: of the switches' hashes, by
// NodeId. Deterministic. Fails with kNotFound where no traffic goes over some wait.
Result<Witness> bring_about(const topo::Graph& graph, const Routes& routes,
                            std::span<const std::uint32_t> seeds, const Circle& circle);

}  // namespace regatta::fabric
