#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/gang_search.h"

namespace regatta::sched {
namespace {

// The worth of a device on a wholly free domain of each level above another, in devices: jobs
// that need the domain whole are rare in this order. Chosen so that none outweighs a step that is
// a tenth slower.
constexpr std::array<double, kTopologyLevels> kWhollyFreeWorth = {0.1, 0.04, 0.02, 0};
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

// Device shares of the gang and left over by it, on nodes and in domains that were wholly free.
double fragmentation_of(const GangTask& task, const NodeView& view,
                        const std::vector<NodeUse>& uses) {
  const ClusterDomains& domains = task.free.domains();
  double devices = 0;
  double lost = 0;
  for (const NodeUse& use : uses) {
    devices += use.devices;
    for (int level = 0; level < kTopologyLevels; ++level) {
      const int domain = at(at(domains.domain_of, level), use.position);
      if (at(at(view.is_wholly_free, level), domain) != 0)
        lost += at(kWhollyFreeWorth, level) * use.devices;
    }
    if (at(view.is_wholly_free[0], use.position) != 0 && use.devices > 0)
      lost += kWhollyFreeWorth[0] *
              (task.free.node(at(domains.order, use.position)).devices - use.devices);
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

GangCost cost_of_shares(const GangTask& task, const NodeView& view, const GangShares& shares) {
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
    failures += task.free.node(at(domains.order, use.position)).failures_per_day;
    replicas += use.replicas;
  }
  const double spread =
      task.job.job_class == JobClass::kOnline
          ? crowding_of(domains, uses)
          : kBatchNode * static_cast<double>(std::ssize(uses)) / std::max(1, replicas);
  result.cost =
      task.weights.communication * (at(task.job.slowdown, static_cast<int>(result.level)) - 1) +
      task.weights.fragmentation * fragmentation_of(task, view, uses) +
      task.weights.risk * failures + task.weights.spread * spread;
  return result;
}

}  // namespace regatta::sched
