// sched/internal/node_classes.h: nodes with equal free capacity, counted together.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_placement.h"

namespace regatta::sched {

// The room that a node has for replicas of whole devices depends on these alone.
struct NodeClass {
  bool has_device_type = false;  // the one that the gang looks at; else it has no device for it
  int devices = 0;               // wholly free
  int device_memory_mib = 0;
  int cpu_milli = 0;
  int memory_mib = 0;
  int nic_milli = 0;

  auto operator<=>(const NodeClass&) const = default;
};
NodeClass class_of(const ClusterNode& node, const NodeCapacity& free, bool has_device_type);

class NodeClasses {
 public:
  // `count` nodes more, or fewer where it is negative.
  void add(const NodeClass& node_class, int count);
  void clear() { counts_.clear(); }

  // Whether `replicas` of each role fit, none of them sliced, in domains that no subgroup divides:
  // those with the most devices first, each on the nodes with the fewest free. Not exact: it may
  // refuse. Time: the classes times the roles.
  bool hold(const std::vector<Role>& roles, const GangSize& replicas) const;

 private:
  std::map<NodeClass, int> counts_;
};

}  // namespace regatta::sched
