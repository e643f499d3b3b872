#include "regatta/platform/sched/internal/victim_room.h"

#include <algorithm>
#include <bit>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

// Steps of exact searches for gangs of several roles, of all checks together.
constexpr int kRoomStatesMax = 10 * kGangStatesMax;

}  // namespace

VictimRoom::VictimRoom(const GangTask& task, int replicas)
    : trial_(task.free),
      task_{trial_, task.job, task.size, task.weights, task.kept},
      kept_(kept_by_position(task)),
      freed_(as_index(replicas)),
      states_left_(kRoomStatesMax) {}

void VictimRoom::enter(DomainRef domain, int device_type) {
  domain_ = domain;
  range_ = at(trial_.domains().of(domain.level), domain.index);
  device_type_ = device_type;
  room_.assign(task_.job.roles.size(), std::vector<int>(as_index(range_.end - range_.begin)));
  room_sum_.assign(task_.job.roles.size(), 0);
  for (int position = range_.begin; position < range_.end; ++position) {
    update(position);
    for (std::size_t role = 0; role < kept_.size(); ++role)
      if (!kept_[role].empty()) room_sum_[role] += at(kept_[role], position);
  }
}

void VictimRoom::update(int position) {
  const int node = at(trial_.domains().order, position);
  for (int role = 0; role < std::ssize(room_); ++role) {
    int& room = at(at(room_, role), position - range_.begin);
    at(room_sum_, role) -= room;
    room = room_on_node(task_, role, device_type_, node);
    at(room_sum_, role) += room;
  }
}

void VictimRoom::free_item(const VictimItem& item) {
  for (const VictimReplica& replica : item.replicas) {
    if (replica.position < range_.begin || replica.position >= range_.end) continue;
    if (at(freed_, replica.id)++ > 0) continue;
    trial_.give(*replica.role, replica.placement);
    update(replica.position);
  }
}

void VictimRoom::take_item(const VictimItem& item) {
  for (const VictimReplica& replica : item.replicas) {
    if (replica.position < range_.begin || replica.position >= range_.end) continue;
    if (--at(freed_, replica.id) > 0) continue;
    trial_.take(*replica.role, replica.placement);
    update(replica.position);
  }
}

bool VictimRoom::fits() {
  for (int role = 0; role < std::ssize(room_); ++role)
    if (at(room_sum_, role) < at(task_.size, role)) return false;
  if (!holds_kept(task_, domain_)) return false;
  const bool has_one_role = room_.size() == 1;
  if (has_one_role && (task_.job.roles[0].subgroup_replicas == 1 ||
                       task_.job.roles[0].subgroup_level >= domain_.level))
    return true;
  return fits_together();
}

bool VictimRoom::fits_together() {
  const NodeView view = view_nodes(trial_);
  for (int role = 0; role < std::ssize(room_); ++role) {
    std::vector<int> kept;
    if (!at(kept_, role).empty())
      kept.assign(at(kept_, role).begin() + range_.begin, at(kept_, role).begin() + range_.end);
    const RoleShares shares({trial_.domains(), view, at(task_.job.roles, role), range_,
                             at(room_, role), std::move(kept), at(task_.size, role)});
    if (!shares.holds(domain_)) return false;
  }
  if (room_.size() == 1) return true;
  if (share_out_by_role(task_, view, device_type_, domain_, FillOrder::kFewest)) return true;
  if (states_left_ <= 0) return false;
  int states = std::min(states_left_, kGangStatesMax);
  const int before = states;
  const bool is_found = share_out_exactly(task_, device_type_, domain_, states).has_value();
  states_left_ -= before - states;
  return is_found;
}

long long VictimRoom::missing_milli() const {
  long long missing = 0;
  for (int role = 0; role < std::ssize(room_); ++role) {
    const Role& request = at(task_.job.roles, role);
    int replicas = at(task_.size, role);
    if (!at(kept_, role).empty())
      for (int i = range_.begin; i < range_.end; ++i)
        replicas -= at(at(kept_, role), i);
    missing += 1LL * replicas * request.devices * request.device_milli;
  }
  for (int i = range_.begin; i < range_.end; ++i) {
    const int node = at(trial_.domains().order, i);
    if (!trial_.free(node).is_open || at(trial_.domains().device_type, node) != device_type_)
      continue;
    for (int device = 0; device < trial_.node(node).devices; ++device)
      missing -= at(trial_.free(node).device_milli, device);
  }
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
