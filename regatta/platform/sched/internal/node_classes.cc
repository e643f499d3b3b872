#include "regatta/platform/sched/internal/node_classes.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

int room_in(const NodeClass& node, const Role& role, int most) {
  const auto limit = [&most](int have, int need) {
    if (need > 0) most = std::min(most, std::max(0, have) / need);
  };
  if (role.devices > 0 && role.device_memory_mib > node.device_memory_mib) return 0;
  limit(node.has_device_type ? node.devices : 0, role.devices);
  limit(node.cpu_milli, role.cpu_milli);
  limit(node.memory_mib, role.memory_mib);
  limit(node.nic_milli, role.nic_milli);
  return most;
}

NodeClass without(NodeClass node, const Role& role, int replicas) {
  node.devices -= replicas * role.devices;
  node.cpu_milli -= replicas * role.cpu_milli;
  node.memory_mib -= replicas * role.memory_mib;
  node.nic_milli -= replicas * role.nic_milli;
  return node;
}

// Takes the replicas from the classes; whether all found room.
bool take(std::map<NodeClass, int>& counts, const Role& role, int replicas) {
  std::map<NodeClass, int> after;
  for (const auto& [node, count] : counts) {
    const int room = room_in(node, role, replicas);
    int left = count;
    if (room > 0) {
      const int full = std::min(count, replicas / room);
      if (full > 0) after[without(node, role, room)] += full;
      replicas -= full * room;
      left -= full;
      if (left > 0 && replicas > 0) {
        ++after[without(node, role, std::min(room, replicas))];
        replicas -= std::min(room, replicas);
        --left;
      }
    }
    if (left > 0) after[node] += left;
  }
  counts = std::move(after);
  return replicas == 0;
}

}  // namespace

NodeClass class_of(const ClusterNode& node, const NodeCapacity& free, bool has_device_type) {
  if (!free.is_open) return {};
  return {has_device_type,        std::popcount(free.whole_free),
          node.device_memory_mib, free.cpu_milli,
          free.memory_mib,        free.nic_milli};
}

void NodeClasses::add(const NodeClass& node_class, int count) {
  int& counted = counts_[node_class];
  counted += count;
  if (counted == 0) counts_.erase(node_class);
}

bool NodeClasses::hold(const std::vector<Role>& roles, const GangSize& replicas) const {
  std::vector<int> order(roles.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&roles](int a, int b) { return at(roles, a).devices > at(roles, b).devices; });
  std::map<NodeClass, int> counts = counts_;
  return std::all_of(order.begin(), order.end(),
                     [&](int role) { return take(counts, at(roles, role), at(replicas, role)); });
}

}  // namespace regatta::sched
