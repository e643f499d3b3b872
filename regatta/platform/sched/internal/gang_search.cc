#include "regatta/platform/sched/internal/gang_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/node_fit.h"

namespace regatta::sched {
namespace {

constexpr int kRoleOrdersMax = 6;

// One after another on a copy of what the domain's nodes have free.
class RoleByRole {
 public:
  RoleByRole(const GangTask& task, int device_type, DomainRef domain)
      : task_(task),
        device_type_(device_type),
        domain_(domain),
        range_(at(task.free.domains().of(domain.level), domain.index)),
        kept_(kept_by_position(task)) {}

  std::optional<GangShares> share_out(const std::vector<int>& roles, FillOrder order) {
    free_.clear();
    for (int i = range_.begin; i < range_.end; ++i)
      free_.push_back(task_.free.free(node_at(i)));
    GangShares shares(roles.size());
    for (const int role : roles) {
      auto share = share_role(role, order);
      if (!share || !take(role, *share)) return std::nullopt;
      at(shares, role) = std::move(*share);
    }
    return shares;
  }

 private:
  int node_at(int position) const { return at(task_.free.domains().order, position); }

  std::optional<std::vector<NodeShare>> share_role(int role, FillOrder order) const {
    std::vector<int> room;
    for (int i = range_.begin; i < range_.end; ++i)
      room.push_back(
          room_on_node(task_, role, device_type_, node_at(i), at(free_, i - range_.begin)));
    std::vector<int> kept;
    if (!at(kept_, role).empty())
      kept.assign(at(kept_, role).begin() + range_.begin, at(kept_, role).begin() + range_.end);
    return RoleShares({task_.free, at(task_.job.roles, role), range_, std::move(room),
                       std::move(kept), at(task_.size, role)})
        .share_out(domain_, order);
  }

  bool take(int role, const std::vector<NodeShare>& shares) {
    const std::span<const Role> request(&at(task_.job.roles, role), 1);
    for (const NodeShare& share : shares) {
      const ClusterNode& node = task_.free.node(node_at(share.position));
      NodeCapacity& free = at(free_, share.position - range_.begin);
      const auto placements = fit_on_node(node, free, request, std::span(&share.replicas, 1));
      if (!placements) return false;
      for (const ReplicaPlacement& placement : *placements)
        take_replica(node, request[0], placement.devices, free);
    }
    return true;
  }

  const GangTask& task_;
  int device_type_;
  DomainRef domain_;
  NodeRange range_;
  std::vector<std::vector<int>> kept_;
  std::vector<NodeCapacity> free_;
};

}  // namespace

std::vector<int> possible_device_types(const GangTask& task) {
  const ClusterDomains& domains = task.free.domains();
  bool needs_devices = false;
  for (int role = 0; role < std::ssize(task.job.roles); ++role)
    needs_devices |= at(task.job.roles, role).devices > 0 && at(task.size, role) > 0;
  if (!needs_devices) return {kAnyDeviceType};
  std::vector<int> types;
  if (task.job.device_types.empty()) {
    types.resize(domains.device_types.size());
    std::iota(types.begin(), types.end(), 0);
  }
  for (const std::string& name : task.job.device_types) {
    const auto found = std::find(domains.device_types.begin(), domains.device_types.end(), name);
    if (found != domains.device_types.end())
      types.push_back(static_cast<int>(found - domains.device_types.begin()));
  }
  for (const ReplicaPlacement& replica : task.kept)
    if (at(task.job.roles, replica.role).devices > 0)
      std::erase_if(types, [&](int type) { return type != at(domains.device_type, replica.node); });
  return types;
}

int room_on_node(const GangTask& task, int role, int device_type, int node,
                 const NodeCapacity& free) {
  const Role& request = at(task.job.roles, role);
  if (request.devices > 0 && device_type != at(task.free.domains().device_type, node)) return 0;
  return std::min(replicas_max(task.free.node(node), free, request), at(task.size, role));
}

std::vector<std::vector<int>> kept_by_position(const GangTask& task) {
  std::vector<std::vector<int>> kept(task.job.roles.size());
  for (const ReplicaPlacement& replica : task.kept) {
    std::vector<int>& role = at(kept, replica.role);
    role.resize(as_index(task.free.nodes()));
    ++at(role, at(task.free.domains().position, replica.node));
  }
  return kept;
}

bool holds_kept(const GangTask& task, DomainRef domain) {
  const ClusterDomains& domains = task.free.domains();
  return std::all_of(task.kept.begin(), task.kept.end(), [&](const ReplicaPlacement& replica) {
    return domains.domain_at(domain.level, at(domains.position, replica.node)) == domain.index;
  });
}

std::optional<GangShares> share_out_by_role(const GangTask& task, int device_type, DomainRef domain,
                                            FillOrder order) {
  RoleByRole search(task, device_type, domain);
  std::vector<int> roles(task.job.roles.size());
  std::iota(roles.begin(), roles.end(), 0);
  // The largest replicas first, then other orders.
  std::stable_sort(roles.begin(), roles.end(), [&task](int a, int b) {
    const Role& first = at(task.job.roles, a);
    const Role& second = at(task.job.roles, b);
    return first.devices * first.device_milli > second.devices * second.device_milli;
  });
  const std::vector<int> first = roles;
  for (int tries = 0; tries < kRoleOrdersMax; ++tries) {
    if (auto shares = search.share_out(roles, order)) return shares;
    std::next_permutation(roles.begin(), roles.end());
    if (roles == first) break;
  }
  return std::nullopt;
}

}  // namespace regatta::sched
