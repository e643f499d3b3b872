#include "regatta/platform/sched/internal/decision_state.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/node_amounts.h"

namespace regatta::sched {
namespace {

// The amounts of one replica on a node, its devices counted by type where quotas name types.
ResourceAmounts typed_amounts(const DecisionState& state, int index, const Role& role) {
  ResourceAmounts amounts = amounts_of_replica(at(state.snapshot.nodes, index), role);
  const int type = state.quota_types.empty() ? -1 : at(state.quota_types, index);
  if (type >= 0) at(amounts.of_type, type) = amounts[Resource::kCompute];
  return amounts;
}

ResourceAmounts capacity_of(const ClusterSnapshot& snapshot) {
  ResourceAmounts capacity;
  for (const ClusterNode& node : snapshot.nodes)
    if (node.health != NodeHealth::kFailed) capacity += usable_amounts(node);
  return capacity;
}

// Empty where the quotas name no device type.
std::vector<int> quota_types_of(const ClusterSnapshot& snapshot, const QuotaTree& tree) {
  std::vector<int> types;
  if (tree.device_types().empty()) return types;
  for (const ClusterNode& node : snapshot.nodes)
    types.push_back(node.devices > 0 ? tree.find_device_type(node.device_type) : -1);
  return types;
}

Status add_account(DecisionState& state, const JobRequest& job) {
  const Result<int> leaf = state.queue.quotas.find_leaf(job.queue);
  if (!leaf)
    return Error{Code::kInvalidInput, fmt::format("job {}: {}", job.name, leaf.error().message)};
  state.accounts.at(&job) = state.usage.account(*leaf, job.user);
  return {};
}

// Nodes of replicas, each once, by name.
std::vector<std::string> node_names(const DecisionState& state,
                                    std::span<const ReplicaPlacement> replicas) {
  std::set<int> nodes;
  for (const ReplicaPlacement& replica : replicas)
    nodes.insert(replica.node);
  std::vector<std::string> names;
  for (const int node : nodes)
    names.push_back(at(state.snapshot.nodes, node).name);
  return names;
}

// The domain that holds all nodes of the replicas: "leaf 3"; "" where it is the cluster.
std::string domain_text(const DecisionState& state, std::span<const ReplicaPlacement> replicas) {
  std::set<int> leaves;
  std::set<int> groups;
  for (const ReplicaPlacement& replica : replicas) {
    const ClusterNode& node = at(state.snapshot.nodes, replica.node);
    leaves.insert(node.leaf);
    groups.insert(node.group);
  }
  if (leaves.size() == 1) return fmt::format("leaf {}", *leaves.begin());
  if (groups.size() == 1) return fmt::format("group {}", *groups.begin());
  return "";
}

}  // namespace

Result<DecisionState> DecisionState::create(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                            const SchedulingPolicy& policy) {
  DecisionState state{.snapshot = snapshot,
                      .queue = queue,
                      .policy = policy,
                      .weights = {.communication = policy.communication_weight,
                                  .fragmentation = policy.fragmentation_weight,
                                  .risk = policy.risk_weight,
                                  .spread = policy.spread_weight},
                      .precautions = node_precautions(snapshot, queue, policy),
                      .free = FreeCapacity(snapshot),
                      .usage = QuotaUsage(queue.quotas),
                      .guarantees = ReclaimRule(queue.quotas),
                      .capacity = capacity_of(snapshot),
                      .device_memory_mib = {},
                      .quota_types = quota_types_of(snapshot, queue.quotas),
                      .accounts = JobAccounts(snapshot, queue),
                      .running = std::vector<JobChange>(snapshot.running.size()),
                      .started = std::vector<std::vector<ReplicaPlacement>>(queue.jobs.size()),
                      .reservations = {},
                      .mixes = {},
                      .victim_facts = {},
                      .decision = {}};
  const ClusterNode* before = nullptr;
  for (const ClusterNode& node : snapshot.nodes) {
    if (node.devices == 0 || (before != nullptr && before->device_type == node.device_type &&
                              before->device_memory_mib == node.device_memory_mib))
      continue;
    int& memory_mib =
        state.device_memory_mib.try_emplace(node.device_type, node.device_memory_mib).first->second;
    memory_mib = std::min(memory_mib, node.device_memory_mib);
    before = &node;
  }
  for (std::size_t i = 0; i < snapshot.running.size(); ++i) {
    const RunningJob& job = snapshot.running[i];
    REGATTA_TRY_DO(add_account(state, job.request));
    state.running[i].replicas = job.replicas;
    state.usage.add(state.accounts.at(&job.request), amounts_on(state, job.request, job.replicas));
  }
  for (const PendingJob& job : queue.jobs)
    REGATTA_TRY_DO(add_account(state, job.request));
  state.free.set_failures_per_day(state.precautions.failures_per_day);
  set_all_open(state.free, state.precautions.avoided, false);
  keep_spares(state);
  return state;
}

FreeCapacity free_with_avoided(const DecisionState& state, const FreeCapacity& free) {
  FreeCapacity all = free;
  set_all_open(all, state.precautions.avoided, true);
  return all;
}

std::string avoided_text(const DecisionState& state, std::span<const ReplicaPlacement> replicas) {
  for (const ReplicaPlacement& replica : replicas)
    if (std::binary_search(state.precautions.avoided.begin(), state.precautions.avoided.end(),
                           replica.node)) {
      const ClusterNode& node = at(state.snapshot.nodes, replica.node);
      return fmt::format("; node {} failed {} times in 90 d, and no other has room", node.name,
                         remembered_failures(node, state.snapshot.now));
    }
  return "";
}

void keep_spares(DecisionState& state) {
  if (!state.policy.spares.is_kept()) return;
  set_all_open(state.free, state.precautions.spares, true);
  state.precautions.spares = choose_spares(state.free, state.policy, state.snapshot.running);
  set_all_open(state.free, state.precautions.spares, false);
}

ResourceAmounts amounts_on(const DecisionState& state, const JobRequest& job,
                           std::span<const ReplicaPlacement> replicas) {
  ResourceAmounts amounts;
  for (const ReplicaPlacement& replica : replicas)
    amounts += typed_amounts(state, replica.node, at(job.roles, replica.role));
  return amounts;
}

bool admits(const DecisionState& state, const JobRequest& job, const GangSize& more) {
  return !quota_passed(state, job, more).has_value();
}

ResourceAmounts amounts_wanted(const DecisionState& state, const JobRequest& job,
                               const GangSize& size) {
  int memory_mib = 0;
  for (const auto& [type, mib] : state.device_memory_mib)
    if (job.device_types.empty() ||
        std::find(job.device_types.begin(), job.device_types.end(), type) != job.device_types.end())
      memory_mib = memory_mib == 0 ? mib : std::min(memory_mib, mib);
  ResourceAmounts amounts = amounts_of(job, size, memory_mib);
  const int type = job.device_types.size() == 1
                       ? state.queue.quotas.find_device_type(job.device_types.front())
                       : -1;
  if (type >= 0) at(amounts.of_type, type) = amounts[Resource::kCompute];
  return amounts;
}

std::vector<JobRequest> by_device_type(const DecisionState& state, const JobRequest& job) {
  std::vector<JobRequest> jobs;
  if (state.quota_types.empty() || devices_min(job) <= 0 || job.device_types.size() == 1)
    return {job};
  const auto add = [&](const std::string& type) {
    jobs.push_back(job);
    jobs.back().device_types = {type};
  };
  for (const std::string& type : job.device_types)
    add(type);
  if (job.device_types.empty())
    for (const auto& [type, memory_mib] : state.device_memory_mib)
      add(type);
  if (jobs.empty()) jobs.push_back(job);
  return jobs;
}

std::optional<QuotaLimit> quota_passed(const DecisionState& state, const JobRequest& job,
                                       const GangSize& more) {
  const int account = state.accounts.at(&job);
  if (state.quota_types.empty())
    return state.usage.limit_passed(account, amounts_wanted(state, job, more));
  std::optional<QuotaLimit> first;
  for (const JobRequest& on_type : by_device_type(state, job)) {
    const auto limit = state.usage.limit_passed(account, amounts_wanted(state, on_type, more));
    if (!limit) return std::nullopt;
    if (!first) first = limit;
  }
  return first;
}

std::optional<QuotaLimit> growth_limit(const DecisionState& state, const JobRequest& job,
                                       std::span<const ReplicaPlacement> replicas,
                                       const GangSize& more) {
  if (state.quota_types.empty() || replicas.empty()) return quota_passed(state, job, more);
  JobRequest on_type = job;
  on_type.device_types = {at(state.snapshot.nodes, replicas.front().node).device_type};
  return state.usage.limit_passed(state.accounts.at(&job), amounts_wanted(state, on_type, more));
}

void block_reservation(const DecisionState& state, const StartReservation& reservation,
                       FreeCapacity& free) {
  const JobRequest& holder = at(state.queue.jobs, reservation.pending).request;
  for (const ReplicaPlacement& replica : reservation.replicas)
    free.block(at(holder.roles, replica.role), replica);
}

FreeCapacity free_beside_reservations(const DecisionState& state) {
  FreeCapacity free = state.free;
  for (const StartReservation& reservation : state.reservations)
    block_reservation(state, reservation, free);
  return free;
}

void take(DecisionState& state, const JobRequest& job, std::span<const ReplicaPlacement> replicas) {
  for (const ReplicaPlacement& replica : replicas)
    state.free.take(at(job.roles, replica.role), replica);
  if (state.mixes)
    for (const ReplicaPlacement& replica : replicas)
      state.mixes->take(job, replica);
  state.usage.add(state.accounts.at(&job), amounts_on(state, job, replicas));
}

void give(DecisionState& state, const JobRequest& job, std::span<const ReplicaPlacement> replicas) {
  for (const ReplicaPlacement& replica : replicas)
    state.free.give(at(job.roles, replica.role), replica);
  if (state.mixes)
    for (const ReplicaPlacement& replica : replicas)
      state.mixes->give(job, replica);
  state.usage.remove(state.accounts.at(&job), amounts_on(state, job, replicas));
}

void add_action(DecisionState& state, ActionKind kind, const JobRequest& job,
                std::vector<ReplicaPlacement> replicas, std::string reason) {
  state.decision.actions.push_back({.kind = kind,
                                    .job = job.name,
                                    .replicas = std::move(replicas),
                                    .reason = std::move(reason)});
}

std::string place_text(const DecisionState& state, const JobRequest& job,
                       std::span<const ReplicaPlacement> replicas) {
  const double devices = devices_of(job, replicas);
  const std::vector<std::string> names = node_names(state, replicas);
  std::string text;
  if (devices > 0) text = fmt::format("{:g} {} on ", devices, devices == 1 ? "device" : "devices");
  if (names.size() == 1) return text + "node " + names.front();
  text += pluralized(names.size(), "node");
  const std::string domain = domain_text(state, replicas);
  if (!domain.empty()) text += " below " + domain;
  return text;
}

}  // namespace regatta::sched
