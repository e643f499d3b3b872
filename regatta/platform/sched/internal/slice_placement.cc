#include "regatta/platform/sched/internal/slice_placement.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kDemandMax = 20'000;  // pods that the policy learns from

// Nodes and shares are passed to packing as they are.
static_assert(kNodeDevicesMax == packing::kNodeGpusMax && kDeviceMilli == packing::kGpuMilli);

bool is_single_slice(const JobRequest& job) {
  return job.roles.size() == 1 && job.roles[0].is_sliced() && job.roles[0].replicas_min == 1;
}

// The share of a device that compute and memory of a slice take of the smallest device that it may
// get; at most the whole.
int share_milli(const Role& role, const JobRequest& job, const std::vector<DeviceKind>& kinds) {
  int memory_mib = 0;
  for (const DeviceKind& kind : kinds) {
    const bool is_accepted =
        job.device_types.empty() || std::find(job.device_types.begin(), job.device_types.end(),
                                              kind.type) != job.device_types.end();
    if (is_accepted && kind.memory_mib >= role.device_memory_mib &&
        (memory_mib == 0 || kind.memory_mib < memory_mib))
      memory_mib = kind.memory_mib;
  }
  if (memory_mib == 0) return role.device_milli;
  const long long of_memory =
      (static_cast<long long>(role.device_memory_mib) * kDeviceMilli + memory_mib - 1) / memory_mib;
  return std::max(role.device_milli, static_cast<int>(of_memory));
}

packing::Pod pod_of(const Role& role, const JobRequest& job, const std::vector<DeviceKind>& kinds) {
  packing::Pod pod;
  pod.cpu_milli = role.cpu_milli;
  pod.memory_mib = role.memory_mib;
  pod.gpus = role.devices;
  if (role.devices > 0)
    pod.gpu_milli = role.is_sliced() ? share_milli(role, job, kinds) : packing::kGpuMilli;
  pod.gpu_models = job.device_types;
  return pod;
}

// A device as placement sees it: what is free of compute and of memory, whichever is less.
packing::GpuNode node_of(const ClusterNode& node, const NodeCapacity& free) {
  packing::GpuNode made;
  made.name = node.name;
  made.gpus = node.devices;
  made.gpu_model = node.device_type;
  if (!free.is_open) return made;
  made.cpu_milli = std::min(free.cpu_milli, packing::kCpuMilliMax);
  made.memory_mib = free.memory_mib;
  for (int i = 0; i < node.devices; ++i) {
    const long long memory = node.device_memory_mib > 0
                                 ? static_cast<long long>(at(free.device_memory_mib, i)) *
                                       kDeviceMilli / node.device_memory_mib
                                 : kDeviceMilli;
    at(made.gpu_free_milli, i) = static_cast<std::int16_t>(
        std::max(0LL, std::min<long long>(at(free.device_milli, i), memory)));
  }
  return made;
}

bool equal_free(const packing::GpuNode& a, const packing::GpuNode& b) {
  return a.cpu_milli == b.cpu_milli && a.memory_mib == b.memory_mib &&
         a.gpu_free_milli == b.gpu_free_milli;
}

bool suffices(const NodeCapacity& free, const Role& role, std::uint32_t devices) {
  if (!free.is_open || free.cpu_milli < role.cpu_milli || free.memory_mib < role.memory_mib ||
      free.nic_milli < role.nic_milli || std::popcount(devices) != role.devices)
    return false;
  for (int i = 0; i < kNodeDevicesMax; ++i)
    if ((devices >> static_cast<unsigned>(i) & 1U) != 0 &&
        (at(free.device_milli, i) < role.device_milli ||
         at(free.device_memory_mib, i) < role.device_memory_mib))
      return false;
  return true;
}

}  // namespace

SlicePlacement::SlicePlacement(const ClusterSnapshot& snapshot, const JobQueue& queue,
                               const SchedulingPolicy& policy)
    : snapshot_(&snapshot), queue_(&queue), policy_(&policy) {}

bool SlicePlacement::open_placer(const FreeCapacity& free) {
  if (!placer_) return create_placer(free);
  std::vector<packing::Placer::NodeChange> changed;
  for (int i = 0; i < free.nodes(); ++i) {
    if (free.free(i) == at(seen_, i)) continue;
    at(seen_, i) = free.free(i);
    packing::GpuNode now = node_of(free.node(i), free.free(i));
    if (!equal_free(now, at(placer_->nodes(), i))) changed.push_back({i, std::move(now)});
  }
  return changed.empty() || placer_->reset(changed);
}

bool SlicePlacement::create_placer(const FreeCapacity& free) {
  for (const ClusterNode& node : snapshot_->nodes) {
    const DeviceKind kind{node.device_type, node.device_memory_mib};
    if (node.devices > 0 && std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end())
      kinds_.push_back(kind);
  }
  std::vector<packing::GpuNode> nodes;
  nodes.reserve(as_index(free.nodes()));
  seen_.clear();
  seen_.reserve(as_index(free.nodes()));
  for (int i = 0; i < free.nodes(); ++i) {
    nodes.push_back(node_of(free.node(i), free.free(i)));
    seen_.push_back(free.free(i));
  }
  std::vector<packing::Pod> demand;
  const auto learn = [&](const JobRequest& job) {
    for (const Role& role : job.roles)
      if (demand.size() < kDemandMax) demand.push_back(pod_of(role, job, kinds_));
  };
  for (const RunningJob& job : snapshot_->running)
    learn(job.request);
  for (const PendingJob& job : queue_->jobs)
    learn(job.request);
  const auto policy = packing::find_placement_policy(policy_->slices);
  if (!policy) return false;
  auto placer = packing::Placer::create(std::move(nodes), demand, *policy, 1);
  if (!placer) return false;
  placer_ = std::move(*placer);
  return true;
}

std::optional<GangPlacement> SlicePlacement::place(const JobRequest& job,
                                                   const FreeCapacity& free) {
  if (!is_single_slice(job) || !open_placer(free)) return std::nullopt;
  const Role& role = job.roles[0];
  const int pod_class = placer_->pod_class(pod_of(role, job, kinds_));
  const auto pod = placer_->place(pod_class);
  if (!pod) return std::nullopt;
  at(seen_, pod->node) = {};  // the placer took it, and the caller may not
  if (!suffices(free.free(pod->node), role, pod->gpus)) {
    placer_->release(pod_class, *pod);
    return std::nullopt;
  }
  GangPlacement placement;
  placement.replicas.push_back({.role = 0, .node = pod->node, .devices = pod->gpus});
  return placement;
}

}  // namespace regatta::sched
