// Jobs that share devices beyond their whole: sched/internal/decision_state.h.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/sched/internal/decision_state.h"

namespace regatta::sched {
namespace {

constexpr int kNamesMax = 4;  // in a reason

// Devices of the first `count` reservations.
std::set<DeviceKey> reserved_devices(const DecisionState& state, int count) {
  std::set<DeviceKey> devices;
  for (int i = 0; i < count; ++i)
    for (const ReplicaPlacement& replica : at(state.reservations, i).replicas)
      for (int device = 0; device < kNodeDevicesMax; ++device)
        if ((replica.devices >> static_cast<unsigned>(device) & 1U) != 0)
          devices.insert({replica.node, device});
  return devices;
}

// Position of the node's device type among those of the job; -1: it is none of them.
int type_rank(const JobRequest& job, const ClusterNode& node) {
  if (job.device_types.empty()) return 0;
  const auto found = std::find(job.device_types.begin(), job.device_types.end(), node.device_type);
  return found == job.device_types.end() ? -1 : static_cast<int>(found - job.device_types.begin());
}

bool has_host_room(const NodeCapacity& free, const Role& role) {
  return free.cpu_milli >= role.cpu_milli && free.memory_mib >= role.memory_mib &&
         free.nic_milli >= role.nic_milli;
}

// Devices in use that admit the job.
class AdmittingDevices {
 public:
  AdmittingDevices(DecisionState& state, const MixSearch& search)
      : state_(state), search_(search), reserved_(reserved_devices(state, search.reservations)) {}

  // The fullest device for a job of one; of the first of its types that has one.
  std::optional<GangPlacement> fullest() {
    const Role& role = search_.job.roles.front();
    std::optional<DeviceKey> best;
    double need_best = 0;
    int rank_best = 0;
    for (const auto& [device, there] : state_.mixes->devices()) {
      const int rank = type_rank(search_.job, at(state_.snapshot.nodes, device.first));
      if (rank < 0 || (best && rank > rank_best)) continue;
      if (!has_host_room(search_.free.free(device.first), role)) continue;
      const auto need = need_on(device);
      if (!need || (best && rank == rank_best && *need <= need_best)) continue;
      best = device;
      need_best = *need;
      rank_best = rank;
    }
    if (!best) return std::nullopt;
    GangPlacement placement;
    placement.replicas.push_back(
        {.role = 0, .node = best->first, .devices = 1U << static_cast<unsigned>(best->second)});
    return placement;
  }

  // The free devices, and those that admit the job as if they were free.
  FreeCapacity view() {
    FreeCapacity view = search_.free;
    if (search_.is_shared_only) view.close_devices();
    const auto role = std::find_if(search_.job.roles.begin(), search_.job.roles.end(),
                                   [](const Role& each) { return each.devices > 0; });
    for (const auto& [device, there] : state_.mixes->devices()) {
      const ClusterNode& node = at(state_.snapshot.nodes, device.first);
      const NodeCapacity& free = search_.free.free(device.first);
      if (type_rank(search_.job, node) < 0) continue;
      const int memory_mib = role->memory_taken(node.device_memory_mib);
      const bool is_free = at(free.device_milli, device.second) >= role->device_milli &&
                           at(free.device_memory_mib, device.second) >= memory_mib;
      if (is_free && !search_.is_shared_only) continue;
      if (need_on(device))
        view.open_device(device.first, device.second, role->device_milli, memory_mib);
    }
    return view;
  }

 private:
  std::optional<double> need_on(DeviceKey device) {
    if (reserved_.count(device) > 0) return std::nullopt;
    return state_.mixes->need_with(search_.job, device, state_.free.free(device.first));
  }

  DecisionState& state_;
  const MixSearch& search_;
  std::set<DeviceKey> reserved_;
};

// Names of the jobs on the devices, each once.
std::vector<std::string> names_on(const DecisionState& state, DeviceKey device) {
  std::set<std::string> names;
  const auto there = state.mixes->devices().find(device);
  if (there != state.mixes->devices().end())
    for (const MixOccupant& occupant : there->second)
      names.insert(occupant.job->name);
  return {names.begin(), names.end()};
}

// Whether they take more than the whole of the device.
bool is_beyond_whole(const DecisionState& state, DeviceKey device,
                     const std::vector<MixOccupant>& there) {
  int milli = 0;
  long long memory_mib = 0;
  for (const MixOccupant& occupant : there) {
    milli += occupant.milli;
    memory_mib += occupant.memory_mib;
  }
  return milli > kDeviceMilli ||
         memory_mib > at(state.snapshot.nodes, device.first).device_memory_mib;
}

std::string mix_reason(const mixing::MixDecision& decision, const std::vector<std::string>& names) {
  if (names.size() == 1) return fmt::format("job {} has the device alone again", names.front());
  return fmt::format("jobs {}: {}", shortened_list(names, kNamesMax), decision.reason);
}

// The ranges of the last drawn day.
std::vector<std::array<Seconds, 2>> runs_of_day(const std::vector<mixing::IntervalRange>& ranges) {
  const double day = 24 * 3600.0;
  const double first = (mixing::kDrawnDays - 1) * day;
  std::vector<std::array<Seconds, 2>> runs;
  for (const mixing::IntervalRange& range : ranges) {
    const double from = static_cast<double>(range.first) * mixing::kDrawnInterval.value - first;
    const double until = static_cast<double>(range.last) * mixing::kDrawnInterval.value - first;
    if (until > 0) runs.push_back({Seconds{std::max(0.0, from)}, Seconds{until}});
  }
  return runs;
}

void add_mix(DecisionState& state, DeviceKey device, const mixing::MixDecision& decision) {
  MixAction action;
  action.mix = {.node = device.first, .device = device.second, .mode = decision.mode};
  action.daemon_flags = daemon_flags(decision, state.mixes->capacity_of(device));
  for (const mixing::SliceSetting& slice : decision.slices)
    action.settings.push_back({.job = slice.workload,
                               .run_flags = run_flags(slice),
                               .runs = runs_of_day(slice.runs),
                               .expected_share = slice.expected_share});
  std::stable_sort(action.settings.begin(), action.settings.end(),
                   [](const auto& a, const auto& b) { return a.job < b.job; });
  action.reason = mix_reason(decision, names_on(state, device));
  state.decision.mixes.push_back(std::move(action));
}

// Equal jobs, in any order: the numbers of kinds order them.
bool is_same(std::vector<MixOccupant> a, std::vector<MixOccupant> b) {
  const auto by_name = [](const MixOccupant& first, const MixOccupant& second) {
    return std::pair{first.job->name, first.milli} < std::pair{second.job->name, second.milli};
  };
  std::sort(a.begin(), a.end(), by_name);
  std::sort(b.begin(), b.end(), by_name);
  return a == b;
}

}  // namespace

std::optional<GangPlacement> place_mixed(DecisionState& state, const MixSearch& search) {
  if (!state.mixes || !may_share_devices(search.job)) return std::nullopt;
  AdmittingDevices devices(state, search);
  const bool is_one_device = search.job.roles.size() == 1 && search.size.front() == 1 &&
                             search.kept.empty() && search.job.roles.front().devices == 1;
  if (is_one_device) return devices.fullest();
  return place_gang(devices.view(), {search.job, search.size, state.weights, search.kept});
}

std::string sharing_text(const DecisionState& state, std::span<const ReplicaPlacement> replicas) {
  if (!state.mixes) return "";
  std::set<std::string> names;
  for (const ReplicaPlacement& replica : replicas)
    for (int device = 0; device < kNodeDevicesMax; ++device)
      if ((replica.devices >> static_cast<unsigned>(device) & 1U) != 0)
        for (const std::string& name : names_on(state, {replica.node, device}))
          names.insert(name);
  if (names.empty()) return "";
  const std::vector<std::string> listed(names.begin(), names.end());
  int devices = 0;
  for (const ReplicaPlacement& replica : replicas)
    devices += std::popcount(replica.devices);
  return fmt::format("; shares {} with {} {}", devices == 1 ? "it" : "some of them",
                     names.size() == 1 ? "job" : "jobs", shortened_list(listed, kNamesMax));
}

void settle_mixes(DecisionState& state) {
  if (!state.mixes) return;
  std::set<DeviceKey> devices;
  for (const auto& [device, there] : state.mixes->devices())
    if (is_beyond_whole(state, device, there)) devices.insert(device);
  std::map<DeviceKey, mixing::MixMode> modes;
  for (const DeviceMix& mix : state.snapshot.mixes) {
    devices.insert({mix.node, mix.device});
    modes[{mix.node, mix.device}] = mix.mode;
  }
  for (const DeviceKey& device : devices) {
    const auto decision = state.mixes->decision_of(device);
    if (!decision) continue;
    const auto mode = modes.find(device);
    const std::vector<MixOccupant>& now = state.mixes->devices().at(device);
    if (mode != modes.end() && mode->second == decision->mode &&
        is_beyond_whole(state, device, now) && is_same(state.mixes->before().at(device), now))
      continue;
    add_mix(state, device, *decision);
  }
}

}  // namespace regatta::sched
