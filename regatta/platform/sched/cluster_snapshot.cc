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
#include "regatta/base/core/text.h"
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
  if (const std::uint32_t unknown = node.failed_devices & ~all_devices(node); unknown != 0)
    return invalid(
        fmt::format("node {}: device {} has failed, and it has {}, numbered from 0; "
                    "correct the number",
                    node.name, std::countr_zero(unknown), node.devices));
  if (!(node.failures_per_day >= 0) || !std::isfinite(node.failures_per_day))
    return invalid(
        fmt::format("node {}: its failures a day are no number of 0 or more", node.name));
  return {};
}

Status check_history(const ClusterNode& node, Seconds now) {
  if (node.failures.empty()) return {};
  if (static_cast<int>(node.failures.size()) > kNodeFailuresMax)
    return invalid(fmt::format("node {}: {} failures; give the latest {}", node.name,
                               node.failures.size(), kNodeFailuresMax));
  // Written so that a time that is no number is refused.
  if (!(node.failures.front() >= node.watched_since) || !(node.failures.back() <= now))
    return invalid(
        fmt::format("node {}: a failure is not between the time since when it is watched and now; "
                    "correct one of them",
                    node.name));
  if (!std::is_sorted(node.failures.begin(), node.failures.end()))
    return invalid(
        fmt::format("node {}: its failures are not in order; sort them by their time", node.name));
  return {};
}

Status check_nodes(const std::vector<ClusterNode>& nodes, Seconds now) {
  KeyIndex names(nodes.size());
  std::vector<int> group_of_leaf;
  for (int i = 0; i < std::ssize(nodes); ++i) {
    const ClusterNode& node = at(nodes, i);
    REGATTA_TRY_DO(check_node(node));
    REGATTA_TRY_DO(check_history(node, now));
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
struct DeviceUse {
  int milli = 0;
  int replicas = 0;
  long long memory_mib = 0;
  const std::string* unmixable = nullptr;  // a job that cannot be mixed
  const DeviceMix* mix = nullptr;
};

struct NodeUse {
  long long cpu_milli = 0;
  long long memory_mib_host = 0;
  long long nic_milli = 0;
  std::vector<DeviceUse> devices;
};

Status check_devices(const RunningJob& job, const ClusterNode& node, const Role& role,
                     std::uint32_t devices) {
  const auto fail = [&](std::string_view what) {
    return invalid(
        fmt::format("job {}: a replica on node {} {}", job.request.name, node.name, what));
  };
  if (const std::uint32_t unknown = devices & ~all_devices(node); unknown != 0)
    return fail(
        fmt::format("has device {}, and the node has {}, numbered from 0; correct the number",
                    std::countr_zero(unknown), node.devices));
  const int held = std::popcount(devices);
  if (held != role.devices)
    return fail(fmt::format(
        "has {}, and its role {} takes {}; list {}", pluralized(held, "device"), role.name,
        role.devices, role.devices == 1 ? "one" : fmt::format("{} different ones", role.devices)));
  return {};
}

Status check_replica_counts(const RunningJob& job) {
  const std::vector<int> counts = replica_counts(job.request, job.replicas);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Role& role = job.request.roles[i];
    if (counts[i] >= role.replicas_min && counts[i] <= role.replicas_max) continue;
    const bool is_less = counts[i] < role.replicas_min;
    return invalid(fmt::format(
        "job {}: its role {} runs with {}, and the gang has {} {}; {}", job.request.name, role.name,
        pluralized(counts[i], "replica"), is_less ? "at least" : "at most",
        is_less ? role.replicas_min : role.replicas_max,
        is_less ? "list all of them, or lower replicas" : "list fewer, or raise replicas_max"));
  }
  return {};
}

// Fails where the jobs so far, of which `name` is the last, take too much of a device.
Status check_device(const ClusterNode& node, int device, const DeviceUse& use,
                    const std::string& name) {
  const bool is_beyond = use.milli > kDeviceMilli;
  const bool has_memory = use.memory_mib <= node.device_memory_mib;
  if (!is_beyond && has_memory) return {};
  if (use.mix == nullptr)
    return invalid(
        fmt::format("node {}: device {} is taken twice, the second time by job {}; "
                    "give one of them another device",
                    node.name, device, name));
  if (use.unmixable != nullptr)
    return invalid(
        fmt::format("node {}: device {} is shared beyond its whole, and job {} cannot be mixed; "
                    "give its role duty and device_memory, or another device",
                    node.name, device, *use.unmixable));
  if (use.replicas > kMixedJobsMax)
    return invalid(
        fmt::format("node {}: more than {} jobs share device {}, job {} the last; give "
                    "it another device",
                    node.name, kMixedJobsMax, device, name));
  if (!has_memory && use.mix->mode != mixing::MixMode::kTimeSlice)
    return invalid(
        fmt::format("node {}: the jobs on device {} take more than its memory, job {} the last; "
                    "only time slices keep memory on the host",
                    node.name, device, name));
  return {};
}

Status add_mixes(const ClusterSnapshot& snapshot, std::vector<NodeUse>& uses) {
  const DeviceMix* before = nullptr;
  for (const DeviceMix& mix : snapshot.mixes) {
    if (mix.node < 0 || mix.node >= static_cast<int>(uses.size()) || mix.device < 0 ||
        mix.device >= static_cast<int>(at(uses, mix.node).devices.size()))
      return invalid(fmt::format("the mix of device {} of node {}: there is no such device",
                                 mix.device, mix.node));
    if (before != nullptr &&
        std::pair{before->node, before->device} >= std::pair{mix.node, mix.device})
      return invalid(
          fmt::format("node {}: the mix of device {} comes twice or too late; list mixes "
                      "by node and device",
                      at(snapshot.nodes, mix.node).name, mix.device));
    at(at(uses, mix.node).devices, mix.device).mix = &mix;
    before = &mix;
  }
  return {};
}

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
  REGATTA_TRY_DO(check_devices(job, node, role, replica.devices));
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
    DeviceUse& taken = at(use.devices, device);
    taken.milli += role.device_milli;
    taken.memory_mib += role.memory_taken(node.device_memory_mib);
    ++taken.replicas;
    if (!role.is_mixable()) taken.unmixable = &name;
    REGATTA_TRY_DO(check_device(node, device, taken, name));
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

int domain_of(std::span<const ClusterNode> nodes, int node, TopologyLevel level) {
  switch (level) {
    case TopologyLevel::kServer:
      return node;
    case TopologyLevel::kLeaf:
      return nodes[as_index(node)].leaf;
    case TopologyLevel::kGroup:
      return nodes[as_index(node)].group;
    case TopologyLevel::kCluster:
      break;
  }
  return 0;
}

TopologyLevel spanned_level(std::span<const ClusterNode> nodes,
                            std::span<const ReplicaPlacement> replicas) {
  auto level = TopologyLevel::kServer;
  for (const ReplicaPlacement& replica : replicas)
    while (domain_of(nodes, replica.node, level) !=
           domain_of(nodes, replicas.front().node, level))  // equal at kCluster
      level = static_cast<TopologyLevel>(static_cast<int>(level) + 1);
  return level;
}

double work_rate(std::span<const ClusterNode> nodes, const JobRequest& job,
                 std::span<const ReplicaPlacement> replicas) {
  double rate = 1;
  const double least = devices_min(job);
  const double held = devices_of(job, replicas);
  if (least > 0 && held != least) rate = throughput_at(job, held) / throughput_at(job, least);
  rate /= at(job.slowdown, static_cast<int>(spanned_level(nodes, replicas)));
  return rate * working_share(job.checkpointing);
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
  REGATTA_TRY_DO(check_nodes(snapshot.nodes, snapshot.now));
  std::vector<NodeUse> uses(snapshot.nodes.size());
  for (std::size_t i = 0; i < uses.size(); ++i)
    uses[i].devices.resize(as_index(snapshot.nodes[i].devices));
  REGATTA_TRY_DO(add_mixes(snapshot, uses));
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
    REGATTA_TRY_DO(check_replica_counts(job));
    if (job.started > snapshot.now || job.checkpointed > snapshot.now)
      return invalid(fmt::format("job {}: it started, or was saved, after the time of the state",
                                 job.request.name));
  }
  return {};
}

}  // namespace regatta::sched
