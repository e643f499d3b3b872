#include "regatta/platform/sched/internal/forecast_cluster.h"

#include <algorithm>
#include <cstddef>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/node_amounts.h"

namespace regatta::sched {
namespace {

std::string forecast_key(const JobRequest& job) {
  std::string key = std::to_string(static_cast<int>(job.topology.required));
  for (const Role& role : job.roles) {
    for (const int value :
         {role.replicas_min, role.devices, role.device_milli, role.device_memory_mib,
          role.cpu_milli, role.memory_mib, role.nic_milli})
      key += ' ' + std::to_string(value);
    key += ';';
  }
  for (const std::string& type : job.device_types)
    key += ' ' + type;
  return key;
}

ForecastReplicas equal_replicas(const Role& role) {
  ForecastReplicas replicas{.count = role.replicas_min, .amounts = {}, .whole_devices = 0};
  replicas.amounts = amounts_of_replica({}, role);
  if (!role.is_sliced()) replicas.whole_devices = role.devices;
  return replicas;
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
    nodes_.push_back({.devices = node.devices,
                      .device_memory_mib = node.device_memory_mib,
                      .type = type,
                      .is_open = node.health == NodeHealth::kReady,
                      .domain = {index, node.leaf, node.group, 0}});
    for (std::size_t level = 0; level < domains_.size(); ++level)
      domains_[level] = std::max(domains_[level], nodes_.back().domain[level] + 1);
    free_.push_back(usable_amounts(node));
  }
  for (const DeviceMix& mix : snapshot.mixes)
    mixed_milli_[{mix.node, mix.device}] = 0;
  if (!mixed_milli_.empty())
    for_each_device(snapshot.running, [this](int node, int device, int milli) {
      const auto mixed = mixed_milli_.find({node, device});
      if (mixed != mixed_milli_.end()) mixed->second += milli;
    });
  for (const RunningJob& job : snapshot.running)
    for (const ForecastPlace& place : places_of(snapshot, job))
      at(free_, place.node) -= place.amounts;
}

std::vector<ForecastPlace> ForecastCluster::places_of(const ClusterSnapshot& snapshot,
                                                      const RunningJob& job) const {
  std::vector<ForecastPlace> places;
  places.reserve(job.replicas.size());
  for (const ReplicaPlacement& replica : job.replicas) {
    const Role& role = at(job.request.roles, replica.role);
    ResourceAmounts amounts = amounts_of_replica(at(snapshot.nodes, replica.node), role);
    for (int device = 0; device < kNodeDevicesMax && !mixed_milli_.empty(); ++device) {
      if ((replica.devices >> device & 1U) == 0) continue;
      const auto mixed = mixed_milli_.find({replica.node, device});
      if (mixed == mixed_milli_.end() || mixed->second <= kDeviceMilli) continue;
      amounts[Resource::kCompute] -=
          role.device_milli - role.device_milli * kDeviceMilli / mixed->second;
    }
    places.push_back({replica.node, amounts});
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
    if (role.replicas_min > 0) shape.replicas.push_back(equal_replicas(role));
  std::stable_sort(shape.replicas.begin(), shape.replicas.end(), [](const auto& a, const auto& b) {
    return a.amounts[Resource::kCompute] > b.amounts[Resource::kCompute];
  });
  shape.accepts.assign(types_.size(), job.device_types.empty() ? 1 : 0);
  for (const std::string& type : job.device_types)
    if (const auto found = types_.find(type); found != types_.end())
      at(shape.accepts, found->second) = 1;
  shapes_.push_back(std::move(shape));
  return entry->second;
}

bool ForecastCluster::accepts(const ForecastShape& shape, int node) const {
  const Node& entry = at(nodes_, node);
  return entry.is_open && at(shape.accepts, entry.type) != 0;
}

int ForecastCluster::domain_of(int node, TopologyLevel level) const {
  return at(nodes_, node).domain[static_cast<std::size_t>(level)];
}

TopologyLevel ForecastCluster::level_of(const ForecastShape& shape) {
  const bool is_one = shape.replicas.size() == 1 && shape.replicas.front().count == 1;
  return is_one ? TopologyLevel::kCluster : shape.required;
}

ResourceAmounts ForecastCluster::amounts_on(int node, const ForecastReplicas& replicas) const {
  ResourceAmounts amounts = replicas.amounts;
  if (replicas.whole_devices > 0)
    amounts[Resource::kDeviceMemory] =
        static_cast<long long>(replicas.whole_devices) * at(nodes_, node).device_memory_mib;
  return amounts;
}

int ForecastCluster::best_node(const ForecastShape& shape, const ForecastReplicas& replicas,
                               Area area, const Free& free) const {
  const auto level = static_cast<std::size_t>(level_of(shape));
  const long long milli = replicas.amounts[Resource::kCompute];
  int best = -1;
  long long least = 0;
  for (int i = 0; i < nodes(); ++i) {
    const Node& node = at(nodes_, i);
    const long long left = at(free, i)[Resource::kCompute] - milli;
    if (left < 0 || node.domain[level] != area.domain || !accepts(shape, i) ||
        (area.type >= 0 && node.type != area.type))
      continue;
    // The smaller node of two that would have as much left.
    if (best >= 0 && (left > least || (left == least && node.devices >= at(nodes_, best).devices)))
      continue;
    if (!holds(at(free, i), amounts_on(i, replicas))) continue;
    best = i;
    least = left;
    if (left == 0 && node.devices * kDeviceMilli == milli) break;
  }
  return best;
}

// The nodes of a domain at the shape's level, or all; takes nothing where a replica fits nowhere.
std::optional<std::vector<ForecastPlace>> ForecastCluster::place_in(const ForecastShape& shape,
                                                                    Area area, Free& free) const {
  std::vector<ForecastPlace> places;
  for (const ForecastReplicas& replicas : shape.replicas) {
    for (int replica = 0; replica < replicas.count; ++replica) {
      const int best = best_node(shape, replicas, area, free);
      if (best < 0) {
        give(places, free);
        return std::nullopt;
      }
      places.push_back({best, amounts_on(best, replicas)});
      at(free, best) -= places.back().amounts;
    }
  }
  return places;
}

std::optional<std::vector<ForecastPlace>> ForecastCluster::place(int shape, Free& free) const {
  const ForecastShape& wanted = at(shapes_, shape);
  const bool is_one = wanted.replicas.size() == 1 && wanted.replicas.front().count == 1;
  const bool has_one_type = is_one || types_.size() <= 1;
  for (int domain = 0; domain < domains(level_of(wanted)); ++domain)
    for (int type = has_one_type ? -1 : 0; type < static_cast<int>(types_.size()); ++type) {
      if (type >= 0 && at(wanted.accepts, type) == 0) continue;
      if (auto places = place_in(wanted, {domain, type}, free)) return places;
      if (type < 0) break;
    }
  return std::nullopt;
}

bool ForecastCluster::fits(int shape, Free& free) const {
  const auto places = place(shape, free);
  if (places) give(*places, free);
  return places.has_value();
}

void ForecastCluster::give(const std::vector<ForecastPlace>& places, Free& free) {
  for (const ForecastPlace& place : places)
    at(free, place.node) += place.amounts;
}

}  // namespace regatta::sched
