// sched/internal/node_fit.h: how many replicas a node holds, and on which of its devices.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

inline constexpr int kReplicasMax = 1 << 20;

// The most replicas of `role` that the node can hold, at most kReplicasMax; exact. With slots_i
// slices of the role's size free on device i and k devices a replica, it is the largest r with
//   sum_i min(slots_i, r) >= k r,
// as the devices of a replica differ (Gale and Ryser, 1957).
int replicas_max(const ClusterNode& node, const NodeCapacity& free, const Role& role);

// Devices of `counts[i]` replicas of `roles[i]`, role by role, where they fit: those of a replica
// below one NUMA node where possible, slices on the fullest devices. Exact; with several sliced
// roles within kNodeStatesMax states of the search. `node` of the placements is 0.
std::optional<std::vector<ReplicaPlacement>> fit_on_node(const ClusterNode& node,
                                                         const NodeCapacity& free,
                                                         std::span<const Role> roles,
                                                         std::span<const int> counts);

inline constexpr int kNodeStatesMax = 20'000;

}  // namespace regatta::sched
