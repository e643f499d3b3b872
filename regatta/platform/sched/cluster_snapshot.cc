#include "regatta/platform/sched/cluster_snapshot.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/key_index.h"

namespace regatta::sched {
namespace {

Error invalid(std::string message) {
  return {Code::kInvalidInput, std::move(message)};
}

std::uint32_t all_devices(const ClusterNode& node) {
  return (1U << static_cast<unsigned>(node.devices)) - 1U;
}

Status check_node(const ClusterNode& node) {
  if (node.devices < 0 || node.devices > kNodeDevicesMax)
    return invalid(fmt::format("node {}: {} devices; a node has 0 to {}", node.name, node.devices,
                               kNodeDevicesMax));
  if (node.device_memory_mib < 0 || node.cpu_milli < 0 || node.memory_mib < 0 || node.nics < 0)
    return invalid(fmt::format("node {}: an amount is negative; give 0 or more", node.name));
  if (node.leaf < 0 || node.group < 0)
    return invalid(
        fmt::format("node {}: its leaf or group is negative; number them from 0", node.name));
  if (node.numa_nodes < 1)
    return invalid(fmt::format("node {}: it has no NUMA node; give 1 or more", node.name));
  if ((node.failed_devices & ~all_devices(node)) != 0)
    return invalid(fmt::format("node {}: a failed device is none of its {}; number them from 0",
                               node.name, node.devices));
  if (!(node.failures_per_day >= 0) || !std::isfinite(node.failures_per_day))
    return invalid(
        fmt::format("node {}: its failures a day are no number of 0 or more", node.name));
  return {};
}

Status check_nodes(const std::vector<ClusterNode>& nodes) {
  KeyIndex names(nodes.size());
  std::vector<int> group_of_leaf;
  for (int i = 0; i < std::ssize(nodes); ++i) {
    const ClusterNode& node = at(nodes, i);
    REGATTA_TRY_DO(check_node(node));
    if (names.find_or_add(std::hash<std::string_view>{}(node.name), i,
                          [&](int other) { return at(nodes, other).name == node.name; }) != i)
      return invalid(fmt::format("node {}: the name comes twice; rename one", node.name));
    if (node.leaf >= static_cast<int>(nodes.size()))
      return invalid(
          fmt::format("node {}: leaf {} of at most {}; number leaves from 0 without gaps",
                      node.name, node.leaf, nodes.size()));
    if (node.leaf >= static_cast<int>(group_of_leaf.size()))
      group_of_leaf.resize(as_index(node.leaf) + 1, -1);
    int& group = at(group_of_leaf, node.leaf);
    if (group >= 0 && group != node.group)
      return invalid(
          fmt::format("node {}: leaf {} is in group {} and in group {}; a leaf is in one",
                      node.name, node.leaf, group, node.group));
    group = node.group;
  }
  return {};
}

// The amounts that running jobs take, to find devices that are taken twice.
struct NodeUse {
  long long cpu_milli = 0;
  long long memory_mib_host = 0;
  long long nic_milli = 0;
  std::vector<int> milli;
  std::vector<long long> memory_mib;
};

Status add_use(const ClusterSnapshot& snapshot, const RunningJob& job,
               const ReplicaPlacement& replica, std::vector<NodeUse>& uses) {
  const std::string& name = job.request.name;
  if (replica.role < 0 || replica.role >= static_cast<int>(job.request.roles.size()))
    return invalid(fmt::format("job {}: a replica has role {} of {}", name, replica.role,
                               job.request.roles.size()));
  if (replica.node < 0 || replica.node >= static_cast<int>(snapshot.nodes.size()))
    return invalid(fmt::format("job {}: a replica runs on node {} of {}", name, replica.node,
                               snapshot.nodes.size()));
  const Role& role = at(job.request.roles, replica.role);
  const ClusterNode& node = at(snapshot.nodes, replica.node);
  if (std::popcount(replica.devices) != role.devices || (replica.devices & ~all_devices(node)) != 0)
    return invalid(
        fmt::format("job {}: a replica on node {} has other devices than the {} that "
                    "its role {} takes; list as many of the node's",
                    name, node.name, role.devices, role.name));
  NodeUse& use = at(uses, replica.node);
  use.cpu_milli += role.cpu_milli;
  use.memory_mib_host += role.memory_mib;
  use.nic_milli += role.nic_milli;
  if (use.cpu_milli > node.cpu_milli || use.memory_mib_host > node.memory_mib ||
      use.nic_milli > static_cast<long long>(node.nics) * kDeviceMilli)
    return invalid(
        fmt::format("node {}: its jobs take more CPUs, memory or NICs than it has, job {} "
                    "the last; correct the node or the roles",
                    node.name, name));
  for (int device = 0; device < node.devices; ++device) {
    if ((replica.devices >> static_cast<unsigned>(device) & 1U) == 0) continue;
    at(use.milli, device) += role.device_milli;
    at(use.memory_mib, device) += role.is_sliced() ? role.device_memory_mib : 0;
    if (at(use.milli, device) > kDeviceMilli || at(use.memory_mib, device) > node.device_memory_mib)
      return invalid(
          fmt::format("node {}: device {} is taken twice, the second time by job {}; "
                      "give one of them another device",
                      node.name, device, name));
  }
  return {};
}

}  // namespace

std::vector<int> replica_counts(const JobRequest& job, std::span<const ReplicaPlacement> replicas) {
  std::vector<int> counts(job.roles.size());
  for (const ReplicaPlacement& replica : replicas)
    ++at(counts, replica.role);
  return counts;
}

double devices_of(const JobRequest& job, std::span<const ReplicaPlacement> replicas) {
  return devices_of(job, replica_counts(job, replicas));
}

bool is_lost(const ClusterSnapshot& snapshot, const ReplicaPlacement& replica) {
  const ClusterNode& node = at(snapshot.nodes, replica.node);
  return node.health == NodeHealth::kFailed || (node.failed_devices & replica.devices) != 0;
}

bool is_degraded(const ClusterSnapshot& snapshot, const RunningJob& job) {
  return std::any_of(job.replicas.begin(), job.replicas.end(),
                     [&](const ReplicaPlacement& replica) { return is_lost(snapshot, replica); });
}

std::vector<ClusterNode> cluster_nodes(const topo::Cluster& cluster, int cpu_milli,
                                       int memory_mib) {
  std::vector<ClusterNode> nodes;
  nodes.reserve(cluster.servers.size());
  const topo::Fabric& fabric = cluster.fabric;
  for (std::size_t i = 0; i < cluster.servers.size(); ++i) {
    const topo::ServerType& type = cluster.type_of({static_cast<int>(i)});
    ClusterNode node;
    node.name = cluster.servers[i].name;
    node.device_type = type.device.name;
    node.devices = type.device_count;
    node.device_memory_mib = static_cast<int>(type.device.memory.value >> 20);
    node.cpu_milli = cpu_milli;
    node.memory_mib = memory_mib;
    node.nics = type.nic_count;
    node.numa_nodes = type.numa_nodes;
    if (fabric.tiers > 0 && fabric.servers_per_leaf > 0)
      node.leaf = static_cast<int>(i) / fabric.servers_per_leaf;
    if (fabric.tiers == 3 && fabric.leaves_per_group > 0)
      node.group = node.leaf / fabric.leaves_per_group;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Status check_snapshot(const ClusterSnapshot& snapshot) {
  REGATTA_TRY_DO(check_nodes(snapshot.nodes));
  std::vector<NodeUse> uses(snapshot.nodes.size());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    uses[i].milli.resize(as_index(snapshot.nodes[i].devices));
    uses[i].memory_mib.resize(as_index(snapshot.nodes[i].devices));
  }
  KeyIndex names(snapshot.running.size());
  for (int i = 0; i < std::ssize(snapshot.running); ++i) {
    const RunningJob& job = at(snapshot.running, i);
    const auto has_same_name = [&](int other) {
      return at(snapshot.running, other).request.name == job.request.name;
    };
    if (names.find_or_add(std::hash<std::string_view>{}(job.request.name), i, has_same_name) != i)
      return invalid(fmt::format("job {}: the name comes twice; rename one", job.request.name));
    REGATTA_TRY_DO(check_job(job.request));
    for (const ReplicaPlacement& replica : job.replicas)
      REGATTA_TRY_DO(add_use(snapshot, job, replica, uses));
    if (job.started > snapshot.now || job.checkpointed > snapshot.now)
      return invalid(fmt::format("job {}: it started, or was saved, after the time of the state",
                                 job.request.name));
  }
  return {};
}

}  // namespace regatta::sched
