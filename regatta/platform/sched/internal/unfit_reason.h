// sched/internal/unfit_reason.h: why not even the empty cluster holds a job.
#pragma once

#include <span>
#include <string>

#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::sched {

// Says what the nodes lack, all of them taken as ready and empty: "no node has devices of type
// b200; the types are h100". It is the first of: the device types, an amount of one replica, all
// amounts of one replica together, the devices of the smallest size in one domain. "" where none of
// these is the reason, as where replicas of 5 devices share nodes of 8.
std::string unfit_reason(std::span<const ClusterNode> nodes, const JobRequest& job);

}  // namespace regatta::sched
