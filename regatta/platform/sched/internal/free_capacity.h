// sched/internal/free_capacity.h: what each node has free, and the domains that nodes form.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

struct NodeCapacity {
  bool is_open = false;          // whether replicas may come: the node is ready
  std::uint32_t whole_free = 0;  // devices that are healthy and not used at all
  int cpu_milli = 0;
  int memory_mib = 0;
  int nic_milli = 0;
  std::array<std::int16_t, kNodeDevicesMax> device_milli{};
  std::array<std::int32_t, kNodeDevicesMax> device_memory_mib{};
};

// Nodes below one leaf or group stand one after the other in `order`.
struct NodeRange {
  int begin = 0;  // into order
  int end = 0;
};

struct ClusterDomains {
  std::vector<int> order;         // nodes by group, leaf, index
  std::vector<NodeRange> leaves;  // by rising begin
  std::vector<NodeRange> groups;
};

// The nodes of a snapshot with what its running jobs leave. A value: copy it to try something. The
// snapshot outlives it.
class FreeCapacity {
 public:
  explicit FreeCapacity(const ClusterSnapshot& snapshot);

  const ClusterNode& node(int node) const;
  const NodeCapacity& free(int node) const;
  int nodes() const;
  const ClusterDomains& domains() const;
  // Domains of `level`, as ranges of domains().order; one for kCluster, one for each node for
  // kServer.
  std::span<const NodeRange> domains_of(TopologyLevel level) const;

  // Takes and returns what a replica of `role` has at `placement`. give() on failed devices leaves
  // them unusable.
  void take(const Role& role, const ReplicaPlacement& placement);
  void give(const Role& role, const ReplicaPlacement& placement);
  // Lets no replica come to the node, or lets them come again.
  void set_open(int node, bool is_open);

 private:
  const ClusterSnapshot* snapshot_;
  std::vector<NodeCapacity> free_;
};

}  // namespace regatta::sched
