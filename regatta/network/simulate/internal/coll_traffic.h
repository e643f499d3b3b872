// simulate/internal/coll_traffic.h: the traffic of the collectives of model/collective, from their
// schedules.
#pragma once

#include <cstdint>
#include <span>

#include "regatta/base/core/result.h"
#include "regatta/model/collective/schedule.h"
#include "regatta/network/simulate/internal/scenario_workload.h"

namespace regatta::simulate {

// Adds the messages of the schedules of all `ranks`, which are ranks in the network in the order of
// the communicator. A message is sent once the sender has done all that it waits for, and received
// once the receiver has done its earlier steps; copies and sums take no time. Fails with
// kInvalidInput where a message has no sender, or as ScenarioWorkload::pair() does.
Status add_schedules(ScenarioWorkload& workload,
                     std::span<const collective::CollectiveSchedule> schedules,
                     std::span<const std::uint32_t> ranks);

// Adds one of kTree, kHalvingDoubling, kHierarchical, kPairwise, kRail over `bytes` of each rank
// (all-reduce: of the vector; all-to-all: of all that a rank sends).
Status add_collective(ScenarioWorkload& workload, TrafficPattern pattern,
                      std::span<const std::uint32_t> ranks, Bytes bytes);

}  // namespace regatta::simulate
