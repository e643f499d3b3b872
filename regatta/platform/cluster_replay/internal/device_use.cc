#include "regatta/platform/cluster_replay/internal/device_use.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::cluster_replay {
namespace {

constexpr double kLowDemand = 0.1;  // of a device: tidal work runs while no more is expected

}  // namespace

DeviceUse::DeviceUse(const std::vector<sched::ClusterNode>& nodes, int jobs,
                     const mixing::DivisionRule& rule)
    : jobs_(as_index(jobs)), rule_(rule) {
  for (const sched::ClusterNode& node : nodes) {
    first_devices_.push_back(static_cast<int>(devices_.size()));
    for (int device = 0; device < node.devices; ++device) {
      devices_.emplace_back();
      devices_.back().memory = Bytes{1LL << 20} * static_cast<double>(node.device_memory_mib);
    }
  }
}

int DeviceUse::index_of(int node, int device) const {
  return at(first_devices_, node) + device;
}

void DeviceUse::mark(int device) {
  if (std::exchange(at(devices_, device).is_changed, true)) return;
  changed_.push_back(device);
}

void DeviceUse::add(int job, const sched::JobRequest& request,
                    std::span<const sched::ReplicaPlacement> replicas) {
  Job& entry = at(jobs_, job);
  entry.served = {};
  for (const sched::ReplicaPlacement& replica : replicas) {
    const sched::Role& role = at(request.roles, replica.role);
    if (role.duty.is_known()) entry.duty = role.duty;
    for (int device = 0; device < sched::kNodeDevicesMax; ++device) {
      if ((replica.devices >> device & 1U) == 0) continue;
      const int index = index_of(replica.node, device);
      User user;
      user.job = job;
      user.share = static_cast<double>(role.device_milli) / sched::kDeviceMilli;
      user.has_target = mixing::has_latency_target(request.job_class);
      user.memory = Bytes{1LL << 20} * static_cast<double>(role.device_memory_mib);
      at(devices_, index).users.push_back(user);
      entry.devices.push_back(index);
      mark(index);
    }
  }
}

void DeviceUse::remove(int job) {
  for (const int index : std::exchange(at(jobs_, job).devices, {})) {
    Device& device = at(devices_, index);
    std::erase_if(device.users, [&](const User& user) { return user.job == job; });
    device.resident = -1;
    mark(index);
  }
}

void DeviceUse::set_demand(int job, double share) {
  for (const int index : at(jobs_, job).devices)
    for (User& user : at(devices_, index).users) {
      if (user.job != job || user.share == share) continue;
      user.share = share;
      mark(index);
    }
}

void DeviceUse::set_mode(int node, int device, mixing::MixMode mode) {
  const int index = index_of(node, device);
  at(devices_, index).mode = mode;
  at(devices_, index).is_mixed = true;
  mark(index);
}

void DeviceUse::clear_mode(int node, int device) {
  const int index = index_of(node, device);
  at(devices_, index).mode = mixing::MixMode::kShared;
  at(devices_, index).is_mixed = false;
  mark(index);
}

void DeviceUse::begin_interval() {
  for (int device = 0; device < static_cast<int>(devices_.size()); ++device) {
    const Device& each = at(devices_, device);
    if (each.is_mixed && each.users.size() > 1 &&
        (each.mode == mixing::MixMode::kTidal || each.mode == mixing::MixMode::kTimeSlice))
      mark(device);
  }
}

void DeviceUse::divide_one(Device& device, Seconds time) {
  demands_.clear();
  Bytes memory{};
  double expected = 0;  // of those with a target, in this part of the day
  for (const User& user : device.users) {
    demands_.push_back({user.share, user.has_target, user.memory});
    memory += user.memory;
    if (user.has_target && device.mode == mixing::MixMode::kTidal)
      expected += mixing::mean_share(at(jobs_, user.job).duty, time);
  }
  if (device.mode == mixing::MixMode::kTidal && expected > kLowDemand)
    for (mixing::DeviceDemand& demand : demands_)
      if (!demand.has_target) demand.share = 0;
  mixing::DivisionRule rule = rule_;
  rule.mode = device.mode;
  if (!device.is_mixed) rule.interference = 0;
  rule.is_swapped = memory > device.memory;
  const mixing::DeviceDivision& got = divider_.divide(demands_, rule, device.resident);
  for (std::size_t i = 0; i < device.users.size(); ++i) {
    User& user = device.users[i];
    const bool is_halted = demands_[i].share < user.share;
    user.served = is_halted ? 0 : got.served[i];
    user.is_met = !is_halted && got.is_met[i];
  }
}

void DeviceUse::update(int job) {
  Job& entry = at(jobs_, job);
  ServedShare served;
  double sum = 0;
  for (const int index : entry.devices)
    for (const User& user : at(devices_, index).users) {
      if (user.job != job) continue;
      served.least = std::min(served.least, user.served);
      served.is_met &= user.is_met;
      sum += user.served;
    }
  if (!entry.devices.empty()) served.mean = sum / static_cast<double>(entry.devices.size());
  entry.served = served;
}

std::vector<int> DeviceUse::divide(Seconds time) {
  std::vector<int> touched;
  for (const int index : std::exchange(changed_, {})) {
    Device& device = at(devices_, index);
    device.is_changed = false;
    divide_one(device, time);
    for (const User& user : device.users)
      if (!std::exchange(at(jobs_, user.job).is_changed, true)) touched.push_back(user.job);
  }
  std::erase_if(touched, [&](int job) {
    Job& entry = at(jobs_, job);
    entry.is_changed = false;
    const ServedShare before = entry.served;
    update(job);
    return before.least == entry.served.least && before.mean == entry.served.mean &&
           before.is_met == entry.served.is_met;
  });
  return touched;
}

const ServedShare& DeviceUse::served(int job) const {
  return at(jobs_, job).served;
}

}  // namespace regatta::cluster_replay
