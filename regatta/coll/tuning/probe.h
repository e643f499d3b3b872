// coll/tuning/probe.h: what the network between the ranks of a new world is worth, found in some
// tens of milliseconds: the cost model starts from it.
#pragma once

#include "regatta/coll/communicator.h"
#include "regatta/coll/tuning/candidates.h"
#include "regatta/core/result.h"

namespace regatta::coll {

// Collective; the same on all ranks: the latency of a step of a barrier, and the rate at which every
// rank sends to the next while it receives from the one before, of the slowest rank. `connections`
// is passed on.
Result<Network> probe_network(Communicator& world, int connections);

}  // namespace regatta::coll
