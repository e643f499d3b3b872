#include "regatta/platform/sched/internal/node_precautions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/reliability/blacklist.h"
#include "regatta/platform/sched/internal/job_progress.h"

namespace regatta::sched {
namespace {

constexpr Seconds kMemory = 90 * reliability::kDay;  // failures before that do not count

// The job that loses most by a failure, as the most devices stand still.
struct LargestJob {
  double devices = 0;
  int nodes = 0;
  std::string device_type;
  Seconds failure_cost;
  Seconds left;  // that it still runs; a day where that is not known
};

Seconds known_or_day(Seconds left) {
  return std::isfinite(left.value) ? left : reliability::kDay;
}

int nodes_of(std::span<const ReplicaPlacement> replicas) {
  std::vector<int> nodes;
  for (const ReplicaPlacement& replica : replicas)
    nodes.push_back(replica.node);
  std::sort(nodes.begin(), nodes.end());
  return static_cast<int>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
}

// The device type that most nodes have, of those that the job accepts.
std::string device_type_for(const ClusterSnapshot& snapshot, const JobRequest& job) {
  std::map<std::string, int> counts;
  for (const ClusterNode& node : snapshot.nodes)
    if (node.devices > 0 &&
        (job.device_types.empty() || std::find(job.device_types.begin(), job.device_types.end(),
                                               node.device_type) != job.device_types.end()))
      ++counts[node.device_type];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? std::string() : most->first;
}

LargestJob largest_job(const ClusterSnapshot& snapshot, const JobQueue& queue) {
  LargestJob largest;
  for (const RunningJob& job : snapshot.running) {
    const double devices = devices_of(job.request, job.replicas);
    if (devices <= largest.devices) continue;
    const auto risk = job_at_risk(snapshot, job);
    largest = {.devices = devices,
               .nodes = nodes_of(job.replicas),
               .device_type = at(snapshot.nodes, job.replicas.front().node).device_type,
               .failure_cost = {reliability::failure_loss(risk) / risk.devices},
               .left = known_or_day(end_time(snapshot, job, 0.5) - snapshot.now)};
  }
  for (const PendingJob& job : queue.jobs) {
    const JobRequest& request = job.request;
    const double devices = devices_min(request);
    if (devices <= largest.devices) continue;
    int replicas = 0;
    for (const Role& role : request.roles)
      replicas += role.devices > 0 ? role.replicas_min : 0;
    const Seconds time = known_or_day(expected_run_time(request, job.completed, 0.5));
    const Seconds interval =
        request.checkpointing.interval.value > 0 ? request.checkpointing.interval : time;
    largest = {.devices = devices,
               .nodes = std::max(1, replicas),
               .device_type = device_type_for(snapshot, request),
               .failure_cost = interval / 2 + request.checkpointing.restart,
               .left = time};
  }
  return largest;
}

bool is_healthy(const ClusterNode& node) {
  return node.health == NodeHealth::kReady && node.failed_devices == 0;
}

}  // namespace

int remembered_failures(const ClusterNode& node, Seconds now) {
  return static_cast<int>(
      reliability::history_of(node.failures, node.watched_since, now, kMemory).failures);
}

NodePrecautions node_precautions(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                 const SchedulingPolicy& policy) {
  NodePrecautions precautions;
  if (!policy.avoids_failing ||
      std::all_of(snapshot.nodes.begin(), snapshot.nodes.end(),
                  [](const ClusterNode& node) { return node.failures.empty(); }))
    return precautions;
  std::vector<reliability::NodeHistory> histories;
  histories.reserve(snapshot.nodes.size());
  for (const ClusterNode& node : snapshot.nodes)
    histories.push_back(
        reliability::history_of(node.failures, node.watched_since, snapshot.now, kMemory));
  const auto prior = reliability::moment_rate_prior(histories);
  if (!prior) return precautions;
  auto rates = std::make_shared<std::vector<double>>();
  for (std::size_t i = 0; i < histories.size(); ++i) {
    const double own = snapshot.nodes[i].failures_per_day;
    const reliability::FailureRate seen = reliability::updated(*prior, histories[i]).mean();
    rates->push_back(own > 0 ? own : seen * reliability::kDay);
    if (own <= 0 && histories[i].failures >= reliability::kFailsAgain && seen > prior->mean())
      precautions.failing.push_back(static_cast<int>(i));
  }
  precautions.failures_per_day = std::move(rates);
  const LargestJob job = largest_job(snapshot, queue);
  if (job.devices <= 0) return precautions;
  int nodes = 0;  // of its type; those of others are no spares, and are judged by the same terms
  for (const ClusterNode& node : snapshot.nodes)
    nodes += node.device_type == job.device_type && node.devices > 0 ? 1 : 0;
  const reliability::KeepingTerms terms{.prior = *prior,
                                        .pool = {.nodes = job.nodes,
                                                 .node_loss = job.nodes * prior->mean(),
                                                 .repair = policy.node_repair},
                                        .spares = std::max(0, nodes - job.nodes),
                                        .horizon = job.left,
                                        .failure_cost = job.failure_cost};
  for (const int node : reliability::nodes_to_avoid(histories, terms))
    if (at(snapshot.nodes, node).health == NodeHealth::kReady) precautions.avoided.push_back(node);
  std::sort(precautions.avoided.begin(), precautions.avoided.end());
  return precautions;
}

bool is_healed_by_spares(const SpareNodes& spares, double devices) {
  return spares.is_kept() && devices >= spares.gang_devices;
}

bool is_healed_by_spares(const SchedulingPolicy& policy, const RunningJob& job) {
  return is_healed_by_spares(policy.spares, devices_of(job.request, job.replicas));
}

std::vector<int> choose_spares(const FreeCapacity& free, const SchedulingPolicy& policy,
                               std::span<const RunningJob> running) {
  const ClusterSnapshot& snapshot = free.snapshot();
  SpareChoice choice{.nodes = snapshot.nodes,
                     .device_types = {},
                     .is_open = [&](int node) { return free.free(node).is_open; },
                     .is_wholly_free =
                         [&](int node) {
                           return std::popcount(free.free(node).whole_free) ==
                                  free.node(node).devices;
                         },
                     .failures_per_day = [&](int node) { return free.failures_per_day(node); }};
  for (const RunningJob& job : running)
    if (is_healed_by_spares(policy, job))
      choice.device_types.insert(at(snapshot.nodes, job.replicas.front().node).device_type);
  return choose_spares(choice, policy.spares);
}

std::vector<int> choose_spares(const SpareChoice& choice, const SpareNodes& spares) {
  if (choice.device_types.empty()) return {};
  std::set<int> begun;  // leaves
  std::vector<int> whole;
  std::map<std::string, int> healthy;
  for (int i = 0; i < std::ssize(choice.nodes); ++i) {
    const ClusterNode& node = at(choice.nodes, i);
    if (node.devices == 0 || !is_healthy(node)) continue;
    ++healthy[node.device_type];
    if (!choice.is_wholly_free(i))
      begun.insert(node.leaf);
    else if (choice.is_open(i) && choice.device_types.count(node.device_type) > 0)
      whole.push_back(i);
  }
  std::map<std::string, int> wanted;
  for (const std::string& type : choice.device_types)
    wanted[type] =
        std::max(spares.nodes, static_cast<int>(std::ceil(spares.share * healthy[type])));
  const auto key = [&](int node) {
    return std::tuple{choice.failures_per_day(node), begun.count(at(choice.nodes, node).leaf) == 0,
                      -node};
  };
  std::sort(whole.begin(), whole.end(), [&](int a, int b) { return key(a) < key(b); });
  std::vector<int> chosen;
  for (const int node : whole)
    if (--wanted[at(choice.nodes, node).device_type] >= 0) chosen.push_back(node);
  return chosen;
}

void set_all_open(FreeCapacity& free, std::span<const int> nodes, bool is_open) {
  for (const int node : nodes)
    free.set_open(node, is_open);
}

}  // namespace regatta::sched
