// sched/internal/node_amounts.h: what nodes have, and what replicas take of it, as one amount of
// each resource.
#pragma once

#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// One replica takes these of the node: whole devices have all their memory.
ResourceAmounts amounts_of_replica(const ClusterNode& node, const Role& role);

// All that the node has but its failed devices.
ResourceAmounts usable_amounts(const ClusterNode& node);

// No resource of `amounts` exceeds what is `free`.
bool holds(const ResourceAmounts& free, const ResourceAmounts& amounts);

}  // namespace regatta::sched
