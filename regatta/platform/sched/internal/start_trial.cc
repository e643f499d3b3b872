#include "regatta/platform/sched/internal/start_trial.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/node_amounts.h"

namespace regatta::sched {

StartTrial::StartTrial(const DecisionState& state, int account)
    : state_(state), account_(account), slices_(state.snapshot, state.queue, state.policy) {}

FreeCapacity StartTrial::free_without(const std::set<int>& gone) const {
  FreeCapacity free = state_.free;
  set_all_open(free, state_.precautions.spares, true);
  for (const int job : gone) {
    const RunningJob& running = at(state_.snapshot.running, job);
    for (const ReplicaPlacement& replica : running.replicas)
      free.give(at(running.request.roles, replica.role), replica);
  }
  if (!state_.policy.spares.is_kept()) return free;
  // Other nodes may be spares then, and none where no large gang is left.
  std::vector<RunningJob> left;
  for (int job = 0; job < std::ssize(state_.snapshot.running); ++job)
    if (gone.count(job) == 0) left.push_back(at(state_.snapshot.running, job));
  set_all_open(free, choose_spares(free, state_.policy, left), false);
  return free;
}

std::optional<GangPlacement> StartTrial::place(const JobRequest& job, const std::set<int>& gone) {
  QuotaUsage usage = state_.usage;
  for (const int other : gone) {
    const RunningJob& running = at(state_.snapshot.running, other);
    usage.remove(state_.accounts.at(&running.request),
                 amounts_on(state_, running.request, running.replicas));
  }
  if (!usage.admits(account_, amounts_wanted(state_, job, smallest_size(job)))) return std::nullopt;
  const FreeCapacity free = free_without(gone);
  if (auto slice = slices_.place(job, free)) return slice;
  auto placement = place_gang(free, {job, smallest_size(job), state_.weights, {}});
  if (!placement && !state_.precautions.avoided.empty())
    placement =
        place_gang(free_with_avoided(state_, free), {job, smallest_size(job), state_.weights, {}});
  return placement;
}

bool StartTrial::fits_repaired(const JobRequest& job) const {
  ClusterSnapshot repaired;
  repaired.nodes = state_.snapshot.nodes;
  for (ClusterNode& node : repaired.nodes) {
    node.health = NodeHealth::kReady;
    node.failed_devices = 0;
  }
  const FreeCapacity free(repaired);
  return place_gang(free, {job, smallest_size(job), state_.weights, {}}).has_value();
}

ResourceAmounts StartTrial::missing_for(const JobRequest& job,
                                        const GangPlacement& placement) const {
  ResourceAmounts missing;
  std::map<int, ResourceAmounts> taken;  // by node
  for (const ReplicaPlacement& replica : placement.replicas) {
    const Role& role = at(job.roles, replica.role);
    const ClusterNode& node = at(state_.snapshot.nodes, replica.node);
    taken[replica.node] += amounts_of_replica(node, role);
    const NodeCapacity& free = state_.free.free(replica.node);
    for (int device = 0; device < kNodeDevicesMax; ++device) {
      if ((replica.devices >> static_cast<unsigned>(device) & 1U) == 0) continue;
      if (at(free.device_milli, device) < role.device_milli)
        missing[Resource::kCompute] += role.device_milli;
      const int memory = role.memory_taken(node.device_memory_mib);
      missing[Resource::kDeviceMemory] +=
          std::max(0, memory - std::max(0, at(free.device_memory_mib, device)));
    }
  }
  for (const auto& [node, amounts] : taken) {
    const NodeCapacity& free = state_.free.free(node);
    const auto add = [&, &all = amounts](Resource resource, int left) {
      missing[resource] += std::max(0LL, all[resource] - std::max(0, left));
    };
    add(Resource::kCpu, free.cpu_milli);
    add(Resource::kMemory, free.memory_mib);
    add(Resource::kNic, free.nic_milli);
  }
  return missing;
}

}  // namespace regatta::sched
