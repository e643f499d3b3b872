#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/gang_search.h"

namespace regatta::sched {
namespace {

// The cost of a device that is lost to other jobs: on a node, and by a wholly free leaf or group
// that is begun, which few jobs need whole. Chosen so that a whole node does not outweigh a step
// that is a tenth slower.
constexpr double kUsableWorth = 0.1;
constexpr std::array<double, kTopologyLevels> kWhollyFreeWorth = {0, 0.04, 0.02, 0};
// Among equal nodes: those with the fewest devices left, then the smaller ones.
constexpr double kLeftWorth = 1e-3;
constexpr double kSizeWorth = 1e-4;
// Devices of a replica that others may bring, as far as a node has so many: each as likely as the
// other; other weights allocated no more on the Philly trace.
constexpr std::array<int, 5> kReplicaSizes = {1, 2, 4, 8, 16};
constexpr double kBatchNode = 0.01;  // of a node a replica, for jobs that are not online
constexpr double kLeafShare = 0.5;   // a replica beside others on a leaf, over one on a node

// All replicas on one node.
struct NodeUse {
  int position = 0;
  int replicas = 0;
  double devices = 0;  // of the new replicas
};

std::vector<NodeUse> merge_uses(const GangTask& task, const GangShares& shares) {
  std::vector<NodeUse> uses;
  for (int role = 0; role < std::ssize(shares); ++role) {
    const Role& request = at(task.job.roles, role);
    const double devices = 1.0 * request.devices * request.device_milli / kDeviceMilli;
    for (const NodeShare& share : at(shares, role))
      uses.push_back({share.position, share.replicas, share.replicas * devices});
  }
  for (const ReplicaPlacement& replica : task.kept)
    uses.push_back({at(task.free.domains().position, replica.node), 1, 0});
  std::stable_sort(uses.begin(), uses.end(),
                   [](const NodeUse& a, const NodeUse& b) { return a.position < b.position; });
  std::vector<NodeUse> merged;
  for (const NodeUse& use : uses) {
    if (merged.empty() || merged.back().position != use.position) {
      merged.push_back(use);
      continue;
    }
    merged.back().replicas += use.replicas;
    merged.back().devices += use.devices;
  }
  return merged;
}

// Devices of `free` ones of the node that replicas of the sizes can use, in the mean.
double usable_devices(const ClusterNode& node, long long free) {
  long long usable = 0;
  int sizes = 0;
  for (const int size : kReplicaSizes) {
    if (size > std::max(node.devices, 8)) break;
    usable += free / size * size;
    ++sizes;
  }
  return static_cast<double>(usable) / sizes;
}

// The cost of a node for other jobs when the gang comes.
double loss_of_node(const GangTask& task, const NodeUse& use) {
  const ClusterNode& node = task.free.node(at(task.free.domains().order, use.position));
  const long long milli = task.free.free_milli(TopologyLevel::kServer, use.position);
  const long long left = std::max(0LL, milli - std::llround(use.devices * kDeviceMilli));
  return kUsableWorth * (usable_devices(node, milli / kDeviceMilli) -
                         usable_devices(node, left / kDeviceMilli)) +
         kLeftWorth * static_cast<double>(left) / kDeviceMilli + kSizeWorth * node.devices;
}

// Devices lost to other jobs, of each that the gang takes.
double fragmentation_of(const GangTask& task, const std::vector<NodeUse>& uses) {
  const ClusterDomains& domains = task.free.domains();
  double devices = 0;
  double lost = 0;
  for (const NodeUse& use : uses) {
    if (use.devices <= 0) continue;
    devices += use.devices;
    lost += loss_of_node(task, use);
    for (int level = 0; level < kTopologyLevels; ++level) {
      const int domain = at(at(domains.domain_of, level), use.position);
      if (task.free.is_wholly_free(static_cast<TopologyLevel>(level), domain))
        lost += at(kWhollyFreeWorth, level) * use.devices;
    }
  }
  return devices > 0 ? lost / devices : 0;
}

// Replicas that share a node, and with less weight a leaf, with others, as a share.
double crowding_of(const ClusterDomains& domains, const std::vector<NodeUse>& uses) {
  double crowded = 0;
  int replicas = 0;
  int leaf = -1;
  int on_leaf = 0;
  const auto count_leaf = [&] {
    if (on_leaf > 1) crowded += kLeafShare * (on_leaf - 1);
  };
  for (const NodeUse& use : uses) {
    replicas += use.replicas;
    crowded += use.replicas - 1;
    if (domains.domain_at(TopologyLevel::kLeaf, use.position) != leaf) {
      count_leaf();
      leaf = domains.domain_at(TopologyLevel::kLeaf, use.position);
      on_leaf = 0;
    }
    on_leaf += use.replicas;
  }
  count_leaf();
  return replicas > 0 ? crowded / replicas : 0;
}

}  // namespace

GangCost cost_of_shares(const GangTask& task, const GangShares& shares) {
  const ClusterDomains& domains = task.free.domains();
  const std::vector<NodeUse> uses = merge_uses(task, shares);
  GangCost result;
  if (uses.empty()) return result;
  while (domains.domain_at(result.level, uses.front().position) !=
         domains.domain_at(result.level, uses.back().position))
    result.level = static_cast<TopologyLevel>(static_cast<int>(result.level) + 1);
  double failures = 0;
  int replicas = 0;
  for (const NodeUse& use : uses) {
    failures += task.free.failures_per_day(at(domains.order, use.position));
    replicas += use.replicas;
  }
  const double spread =
      task.job.job_class == JobClass::kOnline
          ? crowding_of(domains, uses)
          : kBatchNode * static_cast<double>(std::ssize(uses)) / std::max(1, replicas);
  result.cost =
      task.weights.communication * (at(task.job.slowdown, static_cast<int>(result.level)) - 1) +
      task.weights.fragmentation * fragmentation_of(task, uses) + task.weights.risk * failures +
      task.weights.spread * spread;
  return result;
}

}  // namespace regatta::sched
