// comm/internal/tuning/network_probe.h: what the network between the ranks of a new world is worth,
// found in some tens of milliseconds: the cost model starts from it.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/model/collective/candidates.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {

// Collective; the same on all ranks. `known`: of this rank, what is known without asking; to it
// come the latency of a step of a barrier and the rate at which every rank sends to the next while
// it receives from the one before, those of the slowest rank, and the most ways of any rank.
Result<NetworkParameters> probe_network(Communicator& world, const NetworkParameters& known);

}  // namespace regatta::comm
