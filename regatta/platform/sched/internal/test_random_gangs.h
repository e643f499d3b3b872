// sched/internal/test_random_gangs.h: small random clusters and gangs for tests, and what fits by
// trial of every placement.
#pragma once

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_placement.h"

namespace regatta::sched {

using packing::RandomSequence;

inline int random_int(RandomSequence& random, int least, int most) {
  return least + static_cast<int>(random.below(as_index(most - least + 1)));
}

inline Role random_role(RandomSequence& random, int replicas_max) {
  Role role;
  role.name = "worker";
  role.replicas_min = role.replicas_max = random_int(random, 1, replicas_max);
  role.devices = random_int(random, 0, 6) == 0 ? 0 : random_int(random, 1, 4);
  if (role.devices > 0 && random.below(3) == 0) {
    role.devices = random_int(random, 1, 2);
    role.device_milli = 100 * random_int(random, 1, 9);
    role.device_memory_mib = 10 * random_int(random, 0, 9);
  } else if (random.below(8) == 0) {
    role.device_memory_mib = 90;
  }
  if (random.below(3) == 0) role.cpu_milli = 1000 * random_int(random, 1, 6);
  if (random.below(6) == 0) role.memory_mib = 10 * random_int(random, 1, 5);
  if (random.below(8) == 0) role.nic_milli = 500;
  if (random.below(4) == 0) {
    role.subgroup_replicas = random_int(random, 2, 3);
    role.subgroup_level = static_cast<TopologyLevel>(random_int(random, 0, 2));
  }
  return role;
}

inline JobRequest random_gang(RandomSequence& random) {
  JobRequest job;
  job.name = "gang";
  const int roles = random.below(2) == 0 ? 1 : random_int(random, 2, 3);
  for (int i = 0; i < roles; ++i)
    job.roles.push_back(random_role(random, roles == 1 ? 5 : 3));
  job.topology.required = static_cast<TopologyLevel>(random_int(random, 0, 3));
  job.topology.preferred =
      static_cast<TopologyLevel>(random_int(random, 0, static_cast<int>(job.topology.required)));
  if (random.below(3) == 0) job.device_types = {"A"};
  if (random.below(3) == 0) job.device_types.emplace_back("B");
  if (random.below(3) == 0) job.job_class = JobClass::kOnline;
  job.slowdown = {1, 1.05, 1.1, 1.3};
  return job;
}

inline std::vector<ClusterNode> random_nodes(RandomSequence& random, int nodes_max) {
  std::vector<ClusterNode> nodes(as_index(random_int(random, 1, nodes_max)));
  const int leaf_nodes = random_int(random, 1, 4);
  const int group_leaves = random_int(random, 1, 3);
  const int devices = random_int(random, 1, 4);
  for (int i = 0; i < std::ssize(nodes); ++i) {
    ClusterNode& node = at(nodes, i);
    node.name = "n" + std::to_string(i);
    node.device_type = random.below(4) == 0 ? "B" : "A";
    node.devices = random.below(4) == 0 ? random_int(random, 0, 4) : devices;
    node.device_memory_mib = random.below(4) == 0 ? 80 : 100;
    node.cpu_milli = 1000 * random_int(random, 4, 16);
    node.memory_mib = 10 * random_int(random, 4, 16);
    node.nics = random_int(random, 0, 2);
    node.numa_nodes = random_int(random, 1, 2);
    node.leaf = i / leaf_nodes;
    node.group = node.leaf / group_leaves;
    if (random.below(10) == 0) node.health = NodeHealth::kCordoned;
    if (random.below(10) == 0) node.failed_devices = 1;
    if (random.below(3) == 0) node.failures_per_day = 0.01 * random_int(random, 0, 9);
  }
  return nodes;
}

// Devices of the node for one replica, by trial: devices with equal free shares are the same.
inline std::vector<std::uint32_t> device_choices(const ClusterNode& node, const NodeCapacity& free,
                                                 const Role& role) {
  const auto lacks = [](int need, int have) { return need > 0 && need > have; };
  if (!free.is_open || lacks(role.cpu_milli, free.cpu_milli) ||
      lacks(role.memory_mib, free.memory_mib) || lacks(role.nic_milli, free.nic_milli))
    return {};
  std::vector<std::uint32_t> choices;
  std::set<std::vector<std::pair<int, int>>> known;
  for (std::uint32_t devices = 0; devices < 1U << node.devices; ++devices) {
    if (std::popcount(devices) != role.devices) continue;
    std::vector<std::pair<int, int>> shares;
    bool is_free = true;
    for (int i = 0; i < node.devices; ++i) {
      if ((devices >> i & 1U) == 0) continue;
      const int milli = at(free.device_milli, i);
      const int memory = at(free.device_memory_mib, i);
      is_free &= role.is_sliced()
                     ? milli >= role.device_milli && memory >= role.device_memory_mib
                     : milli == kDeviceMilli && node.device_memory_mib >= role.device_memory_mib;
      shares.emplace_back(milli, memory);
    }
    std::sort(shares.begin(), shares.end());
    if (is_free && known.insert(shares).second) choices.push_back(devices);
  }
  return choices;
}

// Places running jobs at random; their replicas are all on one type of devices.
inline ClusterSnapshot random_snapshot(RandomSequence& random, int nodes_max, int jobs) {
  ClusterSnapshot snapshot;
  snapshot.nodes = random_nodes(random, nodes_max);
  for (int i = 0; i < jobs; ++i) {
    RunningJob job;
    job.request.name = "j" + std::to_string(i);
    job.request.roles = {random_role(random, 4)};
    if (random.below(5) == 0) job.request.roles.push_back(random_role(random, 2));
    for (int role = 0; role < std::ssize(job.request.roles); ++role)
      for (int replica = 0; replica < at(job.request.roles, role).replicas_max; ++replica) {
        snapshot.running.push_back(job);
        const FreeCapacity free(snapshot);
        snapshot.running.pop_back();
        const int node = random_int(random, 0, static_cast<int>(std::ssize(snapshot.nodes)) - 1);
        const auto choices =
            device_choices(free.node(node), free.free(node), at(job.request.roles, role));
        if (!choices.empty())
          job.replicas.push_back({role, node, choices[random.below(choices.size())]});
      }
    if (!job.replicas.empty()) snapshot.running.push_back(job);
  }
  return snapshot;
}

// Whether each subgroup of the replicas can stay below one domain of its level.
inline bool has_whole_subgroups(const ClusterDomains& domains, const Role& role,
                                const std::vector<int>& nodes) {
  std::map<int, int> count_below;
  for (const int node : nodes)
    ++count_below[domains.domain_at(role.subgroup_level, at(domains.position, node))];
  int incomplete = 0;
  for (const auto& [domain, count] : count_below)
    incomplete += count % role.subgroup_replicas != 0 ? 1 : 0;
  const auto left = nodes.size() % as_index(role.subgroup_replicas);
  if (incomplete > 1) return false;
  return incomplete == (left > 0 ? 1 : 0);
}

// Tries every placement of the gang.
class GangTrial {
 public:
  GangTrial(const FreeCapacity& free, const JobRequest& job, const GangSize& size,
            std::span<const ReplicaPlacement> kept = {})
      : free_(free), job_(job), size_(size), nodes_(job.roles.size()) {
    for (const ReplicaPlacement& replica : kept)
      at(nodes_, replica.role).push_back(replica.node);
  }

  bool fits() {
    const ClusterDomains& domains = free_.domains();
    std::vector<std::string> types = job_.device_types;
    if (types.empty()) types = domains.device_types;
    for (const std::string& type : types)
      for (const NodeRange range : domains.of(job_.topology.required)) {
        type_ = &type;
        below_.clear();
        for (int i = range.begin; i < range.end; ++i)
          below_.push_back(at(domains.order, i));
        if (is_kept_below() && place(0, 0)) return true;
      }
    return false;
  }

 private:
  bool is_kept_below() const {
    for (int role = 0; role < std::ssize(nodes_); ++role)
      for (const int node : at(nodes_, role)) {
        if (std::find(below_.begin(), below_.end(), node) == below_.end()) return false;
        if (at(job_.roles, role).devices > 0 && free_.node(node).device_type != *type_)
          return false;
      }
    return true;
  }

  // Equal replicas by rising node.
  bool place(int role, int first) {
    if (role == std::ssize(job_.roles)) {
      for (int i = 0; i < std::ssize(nodes_); ++i)
        if (!has_whole_subgroups(free_.domains(), at(job_.roles, i), at(nodes_, i))) return false;
      return true;
    }
    if (std::ssize(at(nodes_, role)) == at(size_, role)) return place(role + 1, 0);
    const Role& request = at(job_.roles, role);
    for (int i = first; i < std::ssize(below_); ++i) {
      const int node = at(below_, i);
      if (request.devices > 0 && free_.node(node).device_type != *type_) continue;
      for (const std::uint32_t devices :
           device_choices(free_.node(node), free_.free(node), request)) {
        const ReplicaPlacement placement{role, node, devices};
        free_.take(request, placement);
        at(nodes_, role).push_back(node);
        const bool is_placed = place(role, i);
        at(nodes_, role).pop_back();
        free_.give(request, placement);
        if (is_placed) return true;
      }
    }
    return false;
  }

  FreeCapacity free_;
  const JobRequest& job_;
  const GangSize& size_;
  const std::string* type_ = nullptr;
  std::vector<int> below_;
  std::vector<std::vector<int>> nodes_;  // of the replicas placed so far, by role
};

// Why a placement is invalid; empty where it is valid.
inline std::string placement_fault(FreeCapacity free, const JobRequest& job, const GangSize& size,
                                   const std::vector<ReplicaPlacement>& added,
                                   std::span<const ReplicaPlacement> kept = {}) {
  const ClusterDomains& domains = free.domains();
  std::vector<ReplicaPlacement> all(kept.begin(), kept.end());
  std::set<std::string> types;
  for (const ReplicaPlacement& replica : added) {
    const Role& role = at(job.roles, replica.role);
    if (std::popcount(replica.devices) != role.devices) return "number of devices";
    bool is_possible = false;
    // Equal devices stand for each other in the choices: compare what they have free.
    const auto shares = [&](std::uint32_t devices) {
      std::vector<std::pair<int, int>> result;
      for (; devices != 0; devices &= devices - 1)
        result.emplace_back(
            at(free.free(replica.node).device_milli, std::countr_zero(devices)),
            at(free.free(replica.node).device_memory_mib, std::countr_zero(devices)));
      std::sort(result.begin(), result.end());
      return result;
    };
    for (const std::uint32_t devices :
         device_choices(free.node(replica.node), free.free(replica.node), role))
      is_possible |= shares(devices) == shares(replica.devices);
    if (!is_possible) return "capacity of node " + std::to_string(replica.node);
    free.take(role, replica);
    all.push_back(replica);
  }
  for (const ReplicaPlacement& replica : all)
    if (at(job.roles, replica.role).devices > 0) types.insert(free.node(replica.node).device_type);
  if (types.size() > 1) return "device types";
  if (!types.empty() && !job.device_types.empty() &&
      std::find(job.device_types.begin(), job.device_types.end(), *types.begin()) ==
          job.device_types.end())
    return "device type";
  std::set<int> below;
  for (const ReplicaPlacement& replica : all)
    below.insert(domains.domain_at(job.topology.required, at(domains.position, replica.node)));
  if (below.size() > 1) return "required level";
  order_gang(domains, job, all);
  for (int role = 0; role < std::ssize(job.roles); ++role) {
    std::vector<int> nodes;
    for (const ReplicaPlacement& replica : all)
      if (replica.role == role) nodes.push_back(replica.node);
    if (std::ssize(nodes) != at(size, role)) return "number of replicas";
    const Role& request = at(job.roles, role);
    for (int i = 0; i < std::ssize(nodes); ++i) {
      const int first = i / request.subgroup_replicas * request.subgroup_replicas;
      if (domains.domain_at(request.subgroup_level, at(domains.position, at(nodes, i))) !=
          domains.domain_at(request.subgroup_level, at(domains.position, at(nodes, first))))
        return "subgroup " + std::to_string(i / request.subgroup_replicas);
    }
  }
  return {};
}

}  // namespace regatta::sched
