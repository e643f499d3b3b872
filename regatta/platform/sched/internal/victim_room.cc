#include "regatta/platform/sched/internal/victim_room.h"

#include <algorithm>
#include <bit>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

bool is_whole(const Role& role) {
  return !role.is_sliced();
}

}  // namespace

VictimRoom::VictimRoom(const GangTask& task, int replicas)
    : trial_(task.free),
      task_{trial_, task.job, task.size, task.weights, task.kept},
      kept_(kept_by_position(task)),
      kept_count_(task.job.roles.size()),
      freed_(as_index(replicas)) {
  for (const ReplicaPlacement& replica : task.kept)
    ++at(kept_count_, replica.role);
}

void VictimRoom::enter(DomainRef domain, int device_type) {
  const ClusterDomains& domains = trial_.domains();
  const std::vector<Role>& roles = task_.job.roles;
  domain_ = domain;
  range_ = at(domains.of(domain.level), domain.index);
  device_type_ = device_type;
  has_kept_below_ = holds_kept(task_, domain);
  room_.assign(roles.size(), {});
  is_pair_ = roles.size() == 2 && is_whole(roles[0]) && is_whole(roles[1]);
  if (is_pair_) pair_ = order_pair(task_.job, 0, 1, device_type);
  uneven_nodes_ = 0;
  loss_most_ = 0;
  pair_counts_.assign(is_pair_ ? as_index(range_.end - range_.begin) : 0, {});
  is_classed_ = roles.size() > 2 && std::all_of(roles.begin(), roles.end(), is_whole);
  classes_.clear();
  smaller_ = 0;
  for (int role = 0; role < std::ssize(roles); ++role) {
    RoleRoom& room = at(room_, role);
    room.level = domain.level;
    if (at(roles, role).subgroup_replicas > 1 && at(roles, role).subgroup_level < domain.level) {
      room.subgroup = at(roles, role).subgroup_replicas;
      room.level = at(roles, role).subgroup_level;
      is_pair_ &= role == pair_.larger && at(kept_count_, role) == 0;
      is_classed_ = false;
    }
    room.rest = at(task_.size, role) % room.subgroup;
    room.first = domains.domain_at(room.level, range_.begin);
    room.node.assign(as_index(range_.end - range_.begin), 0);
    room.domain.assign(as_index(domains.domain_at(room.level, range_.end - 1) + 1 - room.first), 0);
    for (int i = 0; i < std::ssize(room.domain); ++i)
      count_domain(room, i, 1);
  }
  larger_by_loss_.assign(is_pair_ ? at(room_, pair_.larger).domain.size() : 0, {});
  class_at_.assign(is_classed_ ? as_index(range_.end - range_.begin) : 0, {});
  if (is_classed_) classes_.add({}, range_.end - range_.begin);
  const auto update_at = [this](int position) { update(position); };
  if (roles.size() == 1)
    visit_nodes_with_room(trial_, roles[0], range_, update_at);
  else
    for (int position = range_.begin; position < range_.end; ++position)
      update(position);
  for (RoleRoom& room : room_)
    room.entered = room.node;
}

void VictimRoom::count_domain(RoleRoom& room, int domain, int sign) {
  const int replicas = at(room.domain, domain);
  room.subgroups += 1LL * sign * (replicas / room.subgroup);
  if (room.rest > 0 && replicas % room.subgroup >= room.rest) room.domains_with_rest += sign;
}

void VictimRoom::update(int position) {
  const int node = at(trial_.domains().order, position);
  for (int role = 0; role < std::ssize(room_); ++role) {
    RoleRoom& room = at(room_, role);
    int& replicas = at(room.node, position - range_.begin);
    const int now = room_on_node(task_, role, device_type_, node);
    if (now == replicas) continue;
    const int domain = trial_.domains().domain_at(room.level, position) - room.first;
    count_domain(room, domain, -1);
    at(room.domain, domain) += now - replicas;
    replicas = now;
    count_domain(room, domain, 1);
  }
  count_pair(position);
  count_class(position);
}

// Replicas of the larger role come to a node one after another, each with the replicas of the
// smaller one that it costs, but never fewer than the one before: so the cheapest of all nodes can
// be chosen.
void VictimRoom::count_pair(int position) {
  if (!is_pair_) return;
  PairCount& count = at(pair_counts_, position - range_.begin);
  add_count(position, -1);
  const int node = at(trial_.domains().order, position);
  int before =
      std::min(at(at(room_, pair_.smaller).node, position - range_.begin), kPairReplicasMax);
  const int room = at(at(room_, pair_.larger).node, position - range_.begin);
  count.smaller = before;
  count.larger = std::min(room, kPairReplicasMax);
  count.is_even = room == count.larger && before < kPairReplicasMax;
  int loss = 0;
  for (int i = 0; i < count.larger; ++i) {
    const int after =
        std::min(room_beside(task_, pair_, node, trial_.free(node), i + 1), kPairReplicasMax);
    count.is_even &= before - after >= loss;
    loss = std::max(loss, before - after);
    at(count.loss, i) = static_cast<std::uint8_t>(loss);
    before = after;
  }
  loss_most_ = std::max(loss_most_, loss);
  add_count(position, 1);
}

void VictimRoom::add_count(int position, int sign) {
  const PairCount& count = at(pair_counts_, position - range_.begin);
  const RoleRoom& room = at(room_, pair_.larger);
  auto& by_loss =
      at(larger_by_loss_, trial_.domains().domain_at(room.level, position) - room.first);
  smaller_ += 1LL * sign * count.smaller;
  uneven_nodes_ += count.is_even ? 0 : sign;
  for (int i = 0; i < count.larger; ++i)
    at(by_loss, at(count.loss, i)) += sign;
}

void VictimRoom::count_class(int position) {
  if (!is_classed_) return;
  const int node = at(trial_.domains().order, position);
  const NodeClass now = class_of(trial_.node(node), trial_.free(node),
                                 at(trial_.domains().device_type, node) == device_type_);
  NodeClass& before = at(class_at_, position - range_.begin);
  if (now == before) return;
  classes_.add(before, -1);
  classes_.add(now, 1);
  before = now;
}

void VictimRoom::free_item(const VictimItem& item) {
  for (const VictimReplica& replica : item.replicas) {
    if (replica.position < range_.begin || replica.position >= range_.end) continue;
    if (at(freed_, replica.id)++ > 0) continue;
    ++trial_moves_;
    trial_.give(*replica.role, replica.placement);
    update(replica.position);
  }
}

void VictimRoom::take_item(const VictimItem& item) {
  for (const VictimReplica& replica : item.replicas) {
    if (replica.position < range_.begin || replica.position >= range_.end) continue;
    if (--at(freed_, replica.id) > 0) continue;
    ++trial_moves_;
    trial_.take(*replica.role, replica.placement);
    update(replica.position);
  }
}

// Room only grows as items are freed. Two roles may exchange it on a node that gains none.
bool VictimRoom::is_useful(const VictimItem& item) const {
  return std::any_of(
      item.replicas.begin(), item.replicas.end(), [this](const VictimReplica& replica) {
        if (replica.position < range_.begin || replica.position >= range_.end) return false;
        const int i = replica.position - range_.begin;
        return std::any_of(room_.begin(), room_.end(), [this, i](const RoleRoom& room) {
          return at(room.node, i) > (room_.size() == 1 ? at(room.entered, i) : 0);
        });
      });
}

// The incomplete subgroup stands beside whole ones, or in place of one.
bool VictimRoom::holds_alone(int role) const {
  const RoleRoom& room = at(room_, role);
  if (replicas_needed(role) < 0) return false;
  if (room.subgroup > 1 && at(kept_count_, role) > 0) return holds_subgroups_beside_kept(role);
  long long needed = replicas_needed(role) / room.subgroup;
  if (room.rest > 0 && room.domains_with_rest == 0) ++needed;
  return room.subgroups >= needed;
}

bool VictimRoom::holds_subgroups_beside_kept(int role) const {
  const std::vector<int>& kept = at(kept_, role);
  return RoleShares({trial_, at(task_.job.roles, role), range_, at(room_, role).node,
                     std::vector<int>(kept.begin() + range_.begin, kept.begin() + range_.end),
                     at(task_.size, role)})
      .holds(domain_);
}

// A subgroup takes the cheapest replicas of its domain that those before it have left, so that the
// cheapest subgroups of all domains can be chosen; an incomplete one counts as whole.
bool VictimRoom::holds_pair() const {
  const int subgroup = at(room_, pair_.larger).subgroup;
  std::vector<long long> subgroups_by_loss;
  for (const auto& by_loss : larger_by_loss_) {
    int members = 0;
    int loss_of_members = 0;
    for (int loss = 0; loss <= loss_most_; ++loss) {
      long long left = at(by_loss, loss);
      while (left > 0) {
        const int joined = static_cast<int>(std::min<long long>(left, subgroup - members));
        members += joined;
        loss_of_members += joined * loss;
        left -= joined;
        if (members < subgroup) break;
        const long long alike = 1 + (loss_of_members == subgroup * loss ? left / subgroup : 0);
        if (loss_of_members >= std::ssize(subgroups_by_loss))
          subgroups_by_loss.resize(as_index(loss_of_members) + 1);
        at(subgroups_by_loss, loss_of_members) += alike;
        left -= (alike - 1) * subgroup;
        members = loss_of_members = 0;
      }
    }
  }
  long long larger = (replicas_needed(pair_.larger) + subgroup - 1) / subgroup;
  long long smaller = smaller_;
  for (int loss = 0; loss < std::ssize(subgroups_by_loss) && larger > 0; ++loss) {
    const long long taken = std::min(larger, at(subgroups_by_loss, loss));
    larger -= taken;
    smaller -= taken * loss;
  }
  return larger == 0 && smaller >= replicas_needed(pair_.smaller);
}

bool VictimRoom::holds_classes() const {
  GangSize needed;
  for (int role = 0; role < std::ssize(room_); ++role)
    needed.push_back(replicas_needed(role));
  return classes_.hold(task_.job.roles, needed);
}

bool VictimRoom::fits() {
  if (!has_kept_below_) return false;
  for (int role = 0; role < std::ssize(room_); ++role)
    if (!holds_alone(role)) return false;
  if (room_.size() == 1 || (is_pair_ && holds_pair())) return true;
  if (is_classed_ && holds_classes()) return true;
  const int nodes = range_.end - range_.begin;
  if (is_classed_ && nodes > kSearchedNodesMax) return false;
  const bool is_exact = uneven_nodes_ == 0 && at(room_, pair_.larger).rest == 0;
  if (is_pair_ && (is_exact || nodes > kSearchedNodesMax)) return false;
  if (visits_left_ < nodes) return false;
  visits_left_ -= nodes;
  return fits_together();
}

bool VictimRoom::fits_together() {
  if (share_out_by_role(task_, device_type_, domain_, FillOrder::kFewest)) return true;
  if (range_.end - range_.begin > kSearchedNodesMax) return false;
  int states = kGangStatesMax;
  return share_out_exactly(task_, device_type_, domain_, states).has_value();
}

long long VictimRoom::missing_milli() const {
  long long missing = 0;
  for (int role = 0; role < std::ssize(room_); ++role) {
    const Role& request = at(task_.job.roles, role);
    missing += 1LL * replicas_needed(role) * request.devices * request.device_milli;
  }
  trial_.visit_free(range_, [&](int i) {
    if (at(trial_.domains().device_type, at(trial_.domains().order, i)) == device_type_)
      missing -= trial_.free_milli(TopologyLevel::kServer, i);
  });
  return missing;
}

long long VictimRoom::added_milli(const VictimItem& item) const {
  long long added = 0;
  for (const VictimReplica& replica : item.replicas) {
    const int node = replica.placement.node;
    if (replica.position < range_.begin || replica.position >= range_.end ||
        !trial_.free(node).is_open || at(trial_.domains().device_type, node) != device_type_)
      continue;
    const std::uint32_t healthy = replica.placement.devices & ~trial_.node(node).failed_devices;
    added += 1LL * std::popcount(healthy) * replica.role->device_milli;
  }
  return added;
}

}  // namespace regatta::sched
