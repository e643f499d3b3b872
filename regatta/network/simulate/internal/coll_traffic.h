// simulate/internal/coll_traffic.h: what the collectives of coll send, from the very schedules that
// they run.
#pragma once

#include <cstdint>
#include <span>

#include "regatta/base/core/result.h"
#include "regatta/model/collective/schedule.h"
#include "regatta/network/simulate/internal/scenario_workload.h"

namespace regatta::simulate {

// The messages of the schedules of all `ranks`, which are numbers in the network, by their place in
// the communicator. A message leaves once what it waits for is done at the sender, and is received
// once the receiver has done what comes before; copies and sums take no time. Fails with
// kInvalidInput where a message has no sender, or as ScenarioWorkload::pair() does.
Status add_schedules(ScenarioWorkload& workload,
                     std::span<const collective::CollectiveSchedule> schedules,
                     std::span<const std::uint32_t> ranks);

// One of kTree, kHalvingDoubling, kHierarchical, kPairwise, kRail over `bytes` of each rank
// (all-reduce: of the vector; all-to-all: of all that a rank sends).
Status add_collective(ScenarioWorkload& workload, TrafficPattern pattern,
                      std::span<const std::uint32_t> ranks, Bytes bytes);

}  // namespace regatta::simulate
