// Degraded gangs get other places for the replicas that they lost, or keep what they have until
// their nodes return: sched/internal/decision_state.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/make_room.h"

namespace regatta::sched {
namespace {

struct DegradedGang {
  int job = 0;  // running
  std::vector<ReplicaPlacement> kept;
  std::vector<ReplicaPlacement> lost;
};

std::vector<DegradedGang> degraded_gangs(const DecisionState& state) {
  std::vector<DegradedGang> gangs;
  for (std::size_t i = 0; i < state.running.size(); ++i) {
    const RunningJob& job = state.snapshot.running[i];
    if (!is_degraded(state.snapshot, job)) continue;
    DegradedGang gang{.job = static_cast<int>(i), .kept = {}, .lost = {}};
    for (const ReplicaPlacement& replica : job.replicas)
      (is_lost(state.snapshot, replica) ? gang.lost : gang.kept).push_back(replica);
    gangs.push_back(std::move(gang));
  }
  std::stable_sort(gangs.begin(), gangs.end(), [&](const DegradedGang& a, const DegradedGang& b) {
    const JobRequest& first = at(state.snapshot.running, a.job).request;
    const JobRequest& second = at(state.snapshot.running, b.job).request;
    if (first.priority != second.priority) return first.priority > second.priority;
    return first.submitted < second.submitted;
  });
  return gangs;
}

// "device 2 of node n0", "devices 0 and 3 of node n0"
std::string failed_devices_text(const std::string& node, std::uint32_t failed) {
  std::vector<std::string> numbers;
  for (unsigned device = 0; device < kNodeDevicesMax; ++device)
    if ((failed >> device & 1U) != 0) numbers.push_back(std::to_string(device));
  return fmt::format("{} {} of node {}", numbers.size() == 1 ? "device" : "devices",
                     join(numbers, " and "), node);
}

std::string lost_text(const DecisionState& state, const DegradedGang& gang) {
  std::vector<std::string> nodes;
  std::map<std::string, std::uint32_t> devices;  // of nodes that work, by name
  for (const ReplicaPlacement& replica : gang.lost) {
    const ClusterNode& node = at(state.snapshot.nodes, replica.node);
    if (node.health == NodeHealth::kFailed)
      nodes.push_back(node.name);
    else
      devices[node.name] |= node.failed_devices & replica.devices;
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<std::string> parts;
  if (!nodes.empty())
    parts.push_back((nodes.size() == 1 ? "node " : "nodes ") + shortened_list(nodes, 4));
  for (const auto& [node, failed] : devices)
    parts.push_back(failed_devices_text(node, failed));
  if (parts.size() > 4) {
    const std::size_t left = parts.size() - 4;
    parts.resize(4);
    parts.push_back(fmt::format("devices of {} more", pluralized(left, "node")));
  }
  return join(parts, " and ") + " failed";
}

// Whether the gang can continue without its lost replicas.
bool can_shrink_to(const JobRequest& job, const std::vector<ReplicaPlacement>& kept) {
  const std::vector<int> counts = replica_counts(job, kept);
  for (std::size_t role = 0; role < counts.size(); ++role)
    if (counts[role] < job.roles[role].replicas_min ||
        counts[role] % job.roles[role].subgroup_replicas != 0)
      return false;
  return true;
}

void change_replicas(DecisionState& state, const DegradedGang& gang, ActionKind kind,
                     std::vector<ReplicaPlacement> replicas, std::string reason) {
  const RunningJob& job = at(state.snapshot.running, gang.job);
  JobChange& change = at(state.running, gang.job);
  give(state, job.request, gang.lost);
  change.replicas = replicas;
  change.is_changed = true;
  add_action(state, kind, job.request, std::move(replicas), std::move(reason));
}

// Healing takes spares first, then nodes that ordinary jobs may use, then those that are avoided.
std::optional<GangPlacement> find_replacement(const DecisionState& state, const DegradedGang& gang,
                                              bool& is_spare) {
  const RunningJob& job = at(state.snapshot.running, gang.job);
  const GangSize size = replica_counts(job.request, job.replicas);
  const auto place = [&](const FreeCapacity& free) {
    return place_gang(free, {job.request, size, state.weights, gang.kept});
  };
  const std::vector<int>& spares = state.precautions.spares;
  FreeCapacity free = state.free;
  if (!spares.empty() && is_healed_by_spares(state.policy, job)) {
    for (int node = 0; node < free.nodes(); ++node)
      free.set_open(node, false);
    set_all_open(free, spares, true);
    auto placement = place(free);
    is_spare = placement.has_value();
    if (placement) return placement;
    free = state.free;
    set_all_open(free, spares, true);
  }
  auto placement = place(free);
  if (!placement && !state.precautions.avoided.empty())
    placement = place(free_with_avoided(state, free));
  return placement;
}

bool replace_lost(DecisionState& state, const DegradedGang& gang) {
  const RunningJob& job = at(state.snapshot.running, gang.job);
  const GangSize size = replica_counts(job.request, job.replicas);
  bool is_spare = false;
  auto placement = find_replacement(state, gang, is_spare);
  std::string room;
  if (!placement) {
    const MixSearch search{.job = job.request, .size = size, .kept = gang.kept, .free = state.free};
    placement = place_mixed(state, search);
    if (placement) room = sharing_text(state, placement->replicas);
  }
  if (!placement && state.policy.preempts)
    placement = make_room(state,
                          {.job = job.request,
                           .size = size,
                           .kept = gang.kept,
                           .work = work_done(state.snapshot, job)},
                          room);
  if (!placement) return false;
  take(state, job.request, placement->replicas);
  std::vector<ReplicaPlacement> replicas = gang.kept;
  replicas.insert(replicas.end(), placement->replicas.begin(), placement->replicas.end());
  order_gang(state.free.domains(), job.request, replicas);
  std::string reason = fmt::format("{}; the gang {} with {}{}{}{}", lost_text(state, gang),
                                   resume_text(state.snapshot, job), is_spare ? "spare " : "",
                                   place_text(state, job.request, placement->replicas), room,
                                   avoided_text(state, placement->replicas));
  change_replicas(state, gang, ActionKind::kReplace, std::move(replicas), std::move(reason));
  return true;
}

}  // namespace

void heal_degraded_gangs(DecisionState& state) {
  for (const DegradedGang& gang : degraded_gangs(state)) {
    const JobChange& change = at(state.running, gang.job);
    // A gang that gave replicas up for another one in this decision is healed by the next.
    if (change.is_evicted || (!change.is_changed && replace_lost(state, gang))) continue;
    const JobRequest& job = at(state.snapshot.running, gang.job).request;
    if (!change.is_changed && state.policy.resizes && can_shrink_to(job, gang.kept)) {
      change_replicas(state, gang, ActionKind::kShrink, gang.kept,
                      fmt::format("{}, and nothing free replaces it; the gang continues with {}",
                                  lost_text(state, gang), place_text(state, job, gang.kept)));
      continue;
    }
    // Its places stay taken, those on failed nodes too, so that nobody else gets them first.
    state.decision.waiting.push_back({.job = job.name, .cause = WaitCause::kDegraded});
  }
}

}  // namespace regatta::sched
