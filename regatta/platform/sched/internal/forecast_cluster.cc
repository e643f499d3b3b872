#include "regatta/platform/sched/internal/forecast_cluster.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

int usable_milli(const ClusterNode& node) {
  return kDeviceMilli * (node.devices - std::popcount(node.failed_devices));
}

std::string forecast_key(const JobRequest& job) {
  std::string key = std::to_string(static_cast<int>(job.topology.required));
  for (const Role& role : job.roles)
    key += ' ' + std::to_string(role.replicas_min) + 'x' +
           std::to_string(role.devices * role.device_milli);
  for (const std::string& type : job.device_types)
    key += ' ' + type;
  return key;
}

// Calls `visit` with the node, the device and the thousandths of each device of each replica.
template <typename Visit>
void for_each_device(const std::vector<RunningJob>& jobs, Visit visit) {
  for (const RunningJob& job : jobs)
    for (const ReplicaPlacement& replica : job.replicas)
      for (int device = 0; device < kNodeDevicesMax; ++device)
        if ((replica.devices >> device & 1U) != 0)
          visit(replica.node, device, at(job.request.roles, replica.role).device_milli);
}

}  // namespace

ForecastCluster::ForecastCluster(const ClusterSnapshot& snapshot) {
  for (const ClusterNode& node : snapshot.nodes) {
    const int type =
        types_.emplace(node.device_type, static_cast<int>(types_.size())).first->second;
    const int index = static_cast<int>(nodes_.size());
    nodes_.push_back(
        {node.devices, type, node.health == NodeHealth::kReady, {index, node.leaf, node.group, 0}});
    for (std::size_t level = 0; level < domains_.size(); ++level)
      domains_[level] = std::max(domains_[level], nodes_.back().domain[level] + 1);
    free_.push_back(usable_milli(node));
  }
  for (const DeviceMix& mix : snapshot.mixes)
    mixed_milli_[{mix.node, mix.device}] = 0;
  if (!mixed_milli_.empty())
    for_each_device(snapshot.running, [this](int node, int device, int milli) {
      const auto mixed = mixed_milli_.find({node, device});
      if (mixed != mixed_milli_.end()) mixed->second += milli;
    });
  for (const RunningJob& job : snapshot.running)
    for (const ForecastPlace& place : places_of(job))
      at(free_, place.node) -= place.milli;
}

std::vector<ForecastPlace> ForecastCluster::places_of(const RunningJob& job) const {
  std::vector<ForecastPlace> places;
  places.reserve(job.replicas.size());
  for (const ReplicaPlacement& replica : job.replicas) {
    const Role& role = at(job.request.roles, replica.role);
    int milli = role.devices * role.device_milli;
    for (int device = 0; device < kNodeDevicesMax && !mixed_milli_.empty(); ++device) {
      if ((replica.devices >> device & 1U) == 0) continue;
      const auto mixed = mixed_milli_.find({replica.node, device});
      if (mixed == mixed_milli_.end() || mixed->second <= kDeviceMilli) continue;
      milli -= role.device_milli - role.device_milli * kDeviceMilli / mixed->second;
    }
    places.push_back({replica.node, milli});
  }
  return places;
}

int ForecastCluster::shape_of(const JobRequest& job) {
  const auto [entry, is_new] =
      shape_index_.emplace(forecast_key(job), static_cast<int>(shapes_.size()));
  if (!is_new) return entry->second;
  ForecastShape shape;
  shape.required = job.topology.required;
  for (const Role& role : job.roles)
    if (role.devices > 0 && role.replicas_min > 0)
      shape.replicas.emplace_back(role.replicas_min, role.devices * role.device_milli);
  std::sort(shape.replicas.begin(), shape.replicas.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  shape.accepts.assign(types_.size(), job.device_types.empty() ? 1 : 0);
  for (const std::string& type : job.device_types)
    if (const auto found = types_.find(type); found != types_.end())
      at(shape.accepts, found->second) = 1;
  shapes_.push_back(std::move(shape));
  return entry->second;
}

bool ForecastCluster::accepts(int shape, int node) const {
  const Node& entry = at(nodes_, node);
  return entry.is_open && at(at(shapes_, shape).accepts, entry.type) != 0;
}

std::optional<std::vector<ForecastPlace>> ForecastCluster::place_in(const ForecastShape& shape,
                                                                    int domain, Free& free) const {
  std::vector<ForecastPlace> places;
  const auto level = static_cast<std::size_t>(shape.required);
  for (const auto& [count, milli] : shape.replicas) {
    for (int replica = 0; replica < count; ++replica) {
      int best = -1;
      for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
        const Node& node = at(nodes_, i);
        const int left = at(free, i) - milli;
        if (left < 0 || !node.is_open || node.domain[level] != domain ||
            at(shape.accepts, node.type) == 0)
          continue;
        // The smaller node of two that would have as much left.
        if (best < 0 || left < at(free, best) - milli ||
            (left == at(free, best) - milli && node.devices < at(nodes_, best).devices))
          best = i;
        if (left == 0 && node.devices * kDeviceMilli == milli) break;
      }
      if (best < 0) {
        give(places, free);
        return std::nullopt;
      }
      at(free, best) -= milli;
      places.push_back({best, milli});
    }
  }
  return places;
}

std::optional<std::vector<ForecastPlace>> ForecastCluster::place(int shape, Free& free) const {
  const ForecastShape& wanted = at(shapes_, shape);
  if (wanted.required == TopologyLevel::kServer && wanted.replicas.size() == 1 &&
      wanted.replicas.front().first == 1) {  // one replica is on one server anyway
    ForecastShape anywhere = wanted;
    anywhere.required = TopologyLevel::kCluster;
    return place_in(anywhere, 0, free);
  }
  for (int domain = 0; domain < domains_[static_cast<std::size_t>(wanted.required)]; ++domain)
    if (auto places = place_in(wanted, domain, free)) return places;
  return std::nullopt;
}

void ForecastCluster::give(const std::vector<ForecastPlace>& places, Free& free) {
  for (const ForecastPlace& place : places)
    at(free, place.node) += place.milli;
}

}  // namespace regatta::sched
