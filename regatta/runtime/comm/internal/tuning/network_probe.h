// comm/internal/tuning/network_probe.h: measures the network between the ranks of a new world for
// the cost model, in some tens of milliseconds.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/model/collective/candidates.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {

// Collective; the result is the same on all ranks. It is `known`, this rank's parameters, with the
// latency of a step of a barrier, the rate at which every rank sends to the next while it receives
// from the previous one, both of the slowest rank, and the most paths of any rank.
Result<NetworkParameters> probe_network(Communicator& world, const NetworkParameters& known);

}  // namespace regatta::comm
