// sched/internal/gang_search.h: the search for a gang's placement over domains and orders of
// filling.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_placement.h"
#include "regatta/platform/sched/internal/role_shares.h"

namespace regatta::sched {

// New replicas of each role, by role.
using GangShares = std::vector<std::vector<NodeShare>>;

struct GangTask {
  const FreeCapacity& free;
  const JobRequest& job;
  const GangSize& size;
  const GangWeights& weights;
  std::span<const ReplicaPlacement> kept;
};

// Indices of the types that the gang may run on, in the order of preference; kAnyDeviceType alone
// where no role needs a device. The type that it keeps is the only one.
inline constexpr int kAnyDeviceType = -1;
std::vector<int> possible_device_types(const GangTask& task);

// Most new replicas of `role` on the node, which has `free`; none where its device type is another.
int room_on_node(const GangTask& task, int role, int device_type, int node,
                 const NodeCapacity& free);
inline int room_on_node(const GangTask& task, int role, int device_type, int node) {
  return room_on_node(task, role, device_type, node, task.free.free(node));
}

// Calls `visit` with the positions of the range, rising, that may have room for the role.
template <typename Visit>
void visit_nodes_with_room(const FreeCapacity& free, const Role& role, NodeRange range,
                           const Visit& visit) {
  if (role.devices > 0) {
    free.visit_free(range, visit);
    return;
  }
  for (int position = range.begin; position < range.end; ++position)
    visit(position);
}

// Replicas kept, by role and position; empty where none.
std::vector<std::vector<int>> kept_by_position(const GangTask& task);

// Whether the domain holds all that the gang keeps.
bool holds_kept(const GangTask& task, DomainRef domain);

// Shares of a gang of several roles below the domain, one role after another in the best of the
// orders of roles that are tried: not exact.
std::optional<GangShares> share_out_by_role(const GangTask& task, int device_type, DomainRef domain,
                                            FillOrder order);

// Cost and level of shares, with what the gang keeps.
struct GangCost {
  double cost = 0;
  TopologyLevel level = TopologyLevel::kServer;
};
GangCost cost_of_shares(const GangTask& task, const GangShares& shares);

// Shares of a gang of several roles below the domain, where there are any: exact within
// `states_left` steps, which it counts down. A dynamic programme over the nodes: which counts of
// replicas can the nodes so far hold, with the number of the subgroup begun last in each domain.
std::optional<GangShares> share_out_exactly(const GangTask& task, int device_type, DomainRef domain,
                                            int& states_left);

}  // namespace regatta::sched
