// sched/internal/free_capacity.h: what each node has free, and the domains that nodes form.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

struct NodeCapacity {
  bool is_open = false;          // whether replicas may come: the node is ready
  std::uint32_t whole_free = 0;  // devices that are healthy and not used at all
  int cpu_milli = 0;
  int memory_mib = 0;
  int nic_milli = 0;  // of all its NICs together
  // 0 of a failed device. Below 0 where jobs are mixed: what they take is always counted whole, so
  // that each returns what it took.
  std::array<std::int16_t, kNodeDevicesMax> device_milli{};
  std::array<std::int32_t, kNodeDevicesMax> device_memory_mib{};

  bool operator==(const NodeCapacity&) const = default;
};

// Takes and returns what a replica of `role` has on these devices of the node. Failed devices stay
// without anything free.
void take_replica(const ClusterNode& node, const Role& role, std::uint32_t devices,
                  NodeCapacity& free);
void give_replica(const ClusterNode& node, const Role& role, std::uint32_t devices,
                  NodeCapacity& free);

// Nodes below one leaf or group stand one after the other in `order`.
struct NodeRange {
  int begin = 0;  // into order
  int end = 0;
};

// A position is an index into `order`.
struct ClusterDomains {
  std::vector<int> order;     // nodes by group, leaf, index
  std::vector<int> position;  // of each node
  // By level: its domains by rising begin, and the domain of each position. One domain for
  // kCluster, one for each node for kServer.
  std::array<std::vector<NodeRange>, kTopologyLevels> domains;
  std::array<std::vector<int>, kTopologyLevels> domain_of;
  std::vector<std::string> device_types;  // in the order of their first node
  std::vector<int> device_type;           // of each node, into device_types

  std::span<const NodeRange> of(TopologyLevel level) const {
    return domains[static_cast<std::size_t>(level)];
  }
  int domain_at(TopologyLevel level, int position_in_order) const {
    return domain_of[static_cast<std::size_t>(level)][static_cast<std::size_t>(position_in_order)];
  }
};

// The nodes of a snapshot with what its running jobs leave. A value: copy it to try something. The
// snapshot outlives it.
class FreeCapacity {
 public:
  explicit FreeCapacity(const ClusterSnapshot& snapshot);

  const ClusterSnapshot& snapshot() const { return *snapshot_; }
  const ClusterNode& node(int node) const;
  const NodeCapacity& free(int node) const;
  int nodes() const;
  // Failures a day that are expected of the node, or of all nodes in the range; whether of any.
  double failures_per_day(int node) const;
  double failures_per_day(NodeRange range) const {
    return (*failures_before_)[static_cast<std::size_t>(range.end)] -
           (*failures_before_)[static_cast<std::size_t>(range.begin)];
  }
  bool has_failures() const { return failures_before_->back() > 0; }
  const ClusterDomains& domains() const { return *domains_; }
  // Domains of `level`, as ranges of domains().order; one for kCluster, one for each node for
  // kServer.
  std::span<const NodeRange> domains_of(TopologyLevel level) const { return domains_->of(level); }

  // Free thousandths of the devices of its nodes that are open, none of a device that is used
  // beyond its whole; and whether all devices of these nodes are whole and free, and it has some.
  long long free_milli(TopologyLevel level, int domain) const;
  bool is_wholly_free(TopologyLevel level, int domain) const;

  // Calls `visit` with the positions in the range, rising, of open nodes on which some share of a
  // device is free: replicas with devices have no room elsewhere. Few nodes of a full cluster.
  template <typename Visit>
  void visit_free(NodeRange range, const Visit& visit) const {
    for (int first = range.begin / kMaskBits * kMaskBits; first < range.end; first += kMaskBits)
      for (std::uint64_t left = has_free_[static_cast<std::size_t>(first / kMaskBits)]; left != 0;
           left &= left - 1) {
        const int position = first + std::countr_zero(left);
        if (position >= range.begin && position < range.end) visit(position);
      }
  }

  // Takes and returns what a replica of `role` has at `placement`. give() on failed devices leaves
  // them unusable.
  void take(const Role& role, const ReplicaPlacement& placement);
  void give(const Role& role, const ReplicaPlacement& placement);
  // Takes as much of what the replica needs as is free: what is kept for it until it comes.
  void block(const Role& role, const ReplicaPlacement& placement);
  // Lets a replica come to a device that is in use, as if it had so much free; or lets none come to
  // any device. For views of mixed devices: nothing is taken or given afterwards.
  void open_device(int node, int device, int milli, int memory_mib);
  void close_devices();
  // Lets no replica come to the node, or lets them come again.
  void set_open(int node, bool is_open);
  // Other expectations than those of the nodes, by node; null: those of the nodes.
  void set_failures_per_day(std::shared_ptr<const std::vector<double>> failures_per_day);

 private:
  static constexpr int kMaskBits = 64;

  struct DomainSum {
    long long free_milli = 0;
    int nodes = 0;        // open, with devices
    int whole_nodes = 0;  // of these: all devices are whole and free
  };
  void sum_failures();
  DomainSum sum_of(int node) const;
  void add_to_domains(int node, const DomainSum& before);

  const ClusterSnapshot* snapshot_;
  std::shared_ptr<const ClusterDomains> domains_;  // shared by copies
  std::shared_ptr<const std::vector<double>> failures_per_day_;
  std::shared_ptr<const std::vector<double>> failures_before_;  // of all positions before
  std::vector<NodeCapacity> free_;
  std::array<std::vector<DomainSum>, kTopologyLevels> sums_;  // none of kServer
  std::vector<std::uint64_t> has_free_;                       // a bit for each position
};

}  // namespace regatta::sched
