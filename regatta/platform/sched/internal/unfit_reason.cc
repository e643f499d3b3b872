#include "regatta/platform/sched/internal/unfit_reason.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kTypesShown = 8;

bool accepts_type(const JobRequest& job, const ClusterNode& node) {
  return job.device_types.empty() || std::find(job.device_types.begin(), job.device_types.end(),
                                               node.device_type) != job.device_types.end();
}

std::string missing_types(std::span<const ClusterNode> nodes, const JobRequest& job) {
  std::set<std::string> types;
  for (const ClusterNode& node : nodes)
    if (node.devices > 0) types.insert(node.device_type);
  if (types.empty()) return "no node has devices";
  return fmt::format("no node has devices of type {}; the types are {}",
                     join(job.device_types, " or "),
                     shortened_list({types.begin(), types.end()}, kTypesShown));
}

// Amounts that a replica takes of a node, and that the node has; device memory is of one device.
ResourceAmounts taken_of_node(const Role& role) {
  return {{static_cast<long long>(role.devices) * kDeviceMilli,
           role.is_sliced() ? role.device_memory_mib : 0, role.cpu_milli, role.memory_mib,
           role.nic_milli}};
}

ResourceAmounts amounts_of_node(const ClusterNode& node) {
  return {{static_cast<long long>(node.devices) * kDeviceMilli, node.device_memory_mib,
           node.cpu_milli, node.memory_mib, static_cast<long long>(node.nics) * kDeviceMilli}};
}

std::string unfit_replica(std::span<const ClusterNode> nodes, const Role& role) {
  const ResourceAmounts taken = taken_of_node(role);
  ResourceAmounts most;
  bool fits_one = false;
  for (const ClusterNode& node : nodes) {
    const ResourceAmounts has = amounts_of_node(node);
    bool fits = true;
    for (std::size_t i = 0; i < taken.of.size(); ++i) {
      most.of[i] = std::max(most.of[i], has.of[i]);
      fits &= taken.of[i] <= has.of[i];
    }
    fits_one |= fits;
  }
  if (fits_one) return "";
  for (std::size_t i = 0; i < taken.of.size(); ++i)
    if (taken.of[i] > most.of[i]) {
      const auto resource = static_cast<Resource>(i);
      return fmt::format("a replica takes {}, and no node that it may use has more than {}",
                         amount_text(resource, taken.of[i]), amount_text(resource, most.of[i]));
    }
  return "no node has together the devices, CPUs, memory and NICs that a replica takes";
}

std::string unfit_domain(std::span<const ClusterNode> nodes, const JobRequest& job) {
  constexpr EnumNames<kTopologyLevels> kBeyond = {"no node has", "no leaf has", "no group has",
                                                  "the cluster has no"};
  std::map<std::pair<int, std::string>, int> devices;  // by domain and type
  int most = 0;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const ClusterNode& node = nodes[as_index(i)];
    if (!accepts_type(job, node)) continue;
    int& sum = devices[{domain_of(nodes, i, job.topology.required), node.device_type}];
    most = std::max(most, sum += node.devices);
  }
  if (devices_min(job) <= most) return "";
  return fmt::format("it takes {:g} devices, and {} more than {} of one type", devices_min(job),
                     enum_name(kBeyond, job.topology.required), most);
}

}  // namespace

std::string unfit_reason(std::span<const ClusterNode> nodes, const JobRequest& job) {
  std::vector<ClusterNode> usable;
  for (const ClusterNode& node : nodes)
    if (accepts_type(job, node)) usable.push_back(node);
  if (devices_min(job) > 0 &&
      std::none_of(usable.begin(), usable.end(), [](const auto& node) { return node.devices > 0; }))
    return missing_types(nodes, job);
  for (const Role& role : job.roles) {
    if (role.replicas_min == 0) continue;
    if (std::string reason = unfit_replica(usable, role); !reason.empty()) return reason;
  }
  return unfit_domain(nodes, job);
}

}  // namespace regatta::sched
