// Services follow the forecast of their demand: sched/internal/decision_state.h.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/make_room.h"
#include "regatta/platform/sched/internal/service_size.h"

namespace regatta::sched {
namespace {

// The largest number of 0 to `most` that holds; where one holds, those below it do.
template <typename Condition>
int largest_that(int most, const Condition& holds) {
  int known = 0;
  int failing = most + 1;
  for (int tried = most; known + 1 < failing; tried = known + (failing - known) / 2)
    (holds(tried) ? known : failing) = tried;
  return known;
}

// "demand of 420 within 2 min at 50 a replica needs 9 replicas"
std::string need_text(const SchedulingPolicy& policy, const JobRequest& job,
                      const ServiceSize& size) {
  const std::string replicas = pluralized(as_index(size.wanted), "replica");
  const std::size_t seen = job.demand->history.size();
  if (!size.forecast)
    return fmt::format("its demand {}, which gives no forecast: it needs {}",
                       seen == 0
                           ? "was not seen yet"
                           : "is known for " +
                                 format_duration(job.demand->interval * static_cast<double>(seen)) +
                                 " alone",
                       size.wanted == 1 ? "its replica" : "all of its " + replicas);
  return fmt::format("demand of {:.4g} within {} at {:.4g} a replica needs {}", *size.forecast,
                     format_duration(policy.budget.reclaim_lead), job.demand->per_replica,
                     replicas);
}

// Replicas more than a service has.
struct ServiceGrowth {
  std::vector<ReplicaPlacement> replicas;  // taken already
  std::string text;                        // how many, and what limits or makes room for them
};

ServiceGrowth grow_service(DecisionState& state, const JobRequest& job,
                           std::span<const ReplicaPlacement> kept, int more, Seconds work) {
  const int has = static_cast<int>(kept.size());
  const auto request = [&](int count) {
    return RoomRequest{.job = job, .size = {has + count}, .kept = kept, .work = work};
  };
  const int admitted = largest_that(
      more, [&](int count) { return !growth_limit(state, job, kept, GangSize{count}); });
  const auto place = [&](int count) {
    return place_gang(state.free, {job, {has + count}, state.weights, kept});
  };
  const int fitting = largest_that(admitted, [&](int count) {
    return place(count).has_value() || can_make_room(state, request(count));
  });
  ServiceGrowth growth;
  if (fitting == 0) return growth;
  std::string room;
  auto placement = place(fitting);
  if (!placement) placement = make_room(state, request(fitting), room);
  if (!placement) return growth;
  take(state, job, placement->replicas);
  growth.text =
      fmt::format("{} more on {}{}", fitting, place_text(state, job, placement->replicas), room);
  growth.replicas = std::move(placement->replicas);
  if (fitting == more) return growth;
  const auto limit = growth_limit(state, job, kept, GangSize{1});
  growth.text += fmt::format("; for {} there is no room", more - fitting);
  if (admitted == fitting && limit)
    growth.text += ": " + limit_text(state.queue.quotas, *limit, job.user);
  return growth;
}

void change_service(DecisionState& state, int running, ActionKind kind,
                    std::vector<ReplicaPlacement> replicas, std::string reason) {
  const JobRequest& job = at(state.snapshot.running, running).request;
  JobChange& change = at(state.running, running);
  order_gang(state.free.domains(), job, replicas);
  change.replicas = replicas;
  change.is_changed = true;
  add_action(state, kind, job, std::move(replicas), std::move(reason));
}

// A node on which a service has replicas: indices into these.
struct ServiceNode {
  int node = 0;
  std::vector<int> replicas;
  bool is_left = false;   // jobs leave it
  bool is_whole = false;  // without these replicas all its devices are free
  int free_devices = 0;   // without them
};

std::vector<ServiceNode> service_nodes(const DecisionState& state, const JobRequest& job,
                                       std::span<const ReplicaPlacement> replicas) {
  std::map<int, ServiceNode> by_node;
  for (int i = 0; i < std::ssize(replicas); ++i)
    by_node[at(replicas, i).node].replicas.push_back(i);
  std::vector<ServiceNode> nodes;
  for (auto& [index, node] : by_node) {
    const ClusterNode& described = state.free.node(index);
    NodeCapacity free = state.free.free(index);
    for (const int i : node.replicas)
      give_replica(described, job.roles.front(), at(replicas, i).devices, free);
    node.node = index;
    node.is_left = described.health != NodeHealth::kReady;
    node.free_devices = std::popcount(free.whole_free);
    node.is_whole =
        node.free_devices == described.devices - std::popcount(described.failed_devices);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

std::vector<int> replicas_to_return(const DecisionState& state, const JobRequest& job,
                                    std::span<const ReplicaPlacement> replicas, int count) {
  std::vector<ServiceNode> nodes = service_nodes(state, job, replicas);
  // Nodes that jobs leave; then those that become free for the fewest replicas, so that as many as
  // possible do; then those with the most devices free.
  std::sort(nodes.begin(), nodes.end(), [](const ServiceNode& a, const ServiceNode& b) {
    const auto rank = [](const ServiceNode& node) {
      return std::tuple(!node.is_left, !node.is_whole,
                        node.is_whole ? std::ssize(node.replicas) : 0, -node.free_devices,
                        node.node);
    };
    return rank(a) < rank(b);
  });
  std::vector<int> returned;
  const auto lacks = [&] { return count - static_cast<int>(returned.size()); };
  const auto give_back = [&](ServiceNode& node) {
    for (; lacks() > 0 && !node.replicas.empty(); node.replicas.pop_back())
      returned.push_back(node.replicas.back());
  };
  for (ServiceNode& node : nodes)
    if (node.is_left || (node.is_whole && std::ssize(node.replicas) <= lacks())) give_back(node);
  for (ServiceNode& node : nodes)
    give_back(node);
  std::sort(returned.begin(), returned.end());
  return returned;
}

namespace {

void shrink_service(DecisionState& state, int running, const ServiceSize& size) {
  const RunningJob& job = at(state.snapshot.running, running);
  const int more = static_cast<int>(job.replicas.size()) - size.held;
  const std::vector<int> returned = replicas_to_return(state, job.request, job.replicas, more);
  std::vector<ReplicaPlacement> given;
  std::vector<ReplicaPlacement> left;
  for (int i = 0; i < std::ssize(job.replicas); ++i)
    (std::binary_search(returned.begin(), returned.end(), i) ? given : left)
        .push_back(at(job.replicas, i));
  give(state, job.request, given);
  std::string reason = fmt::format(
      "{}, and for {} no forecast asked for more than {}; it gives {} up",
      need_text(state.policy, job.request, size), format_duration(state.policy.service_hold),
      size.held, place_text(state, job.request, given));
  change_service(state, running, ActionKind::kShrink, std::move(left), std::move(reason));
}

}  // namespace

void size_services(DecisionState& state) {
  std::vector<std::pair<int, ServiceSize>> short_services;
  for (int i = 0; i < static_cast<int>(state.running.size()); ++i) {
    const RunningJob& job = at(state.snapshot.running, i);
    if (!follows_demand(state.policy, job.request) || at(state.running, i).is_changed ||
        is_degraded(state.snapshot, job))
      continue;
    const ServiceSize size = service_size(state.policy, job.request);
    const int has = static_cast<int>(job.replicas.size());
    if (has > size.held)
      shrink_service(state, i, size);
    else if (has < size.wanted)
      short_services.emplace_back(i, size);
  }
  // Those that grow find what the others gave back.
  std::stable_sort(short_services.begin(), short_services.end(), [&](const auto& a, const auto& b) {
    const JobRequest& first = at(state.snapshot.running, a.first).request;
    const JobRequest& second = at(state.snapshot.running, b.first).request;
    if (first.priority != second.priority) return first.priority > second.priority;
    return first.submitted < second.submitted;
  });
  for (const auto& [running, size] : short_services) {
    const RunningJob& job = at(state.snapshot.running, running);
    start_jobs_before(state, job);
    if (at(state.running, running).is_changed) continue;  // it made room for another
    const ServiceGrowth growth = grow_service(state, job.request, job.replicas,
                                              size.wanted - static_cast<int>(job.replicas.size()),
                                              work_done(state.snapshot, job));
    if (growth.replicas.empty()) continue;
    std::vector<ReplicaPlacement> all = job.replicas;
    all.insert(all.end(), growth.replicas.begin(), growth.replicas.end());
    change_service(state, running, ActionKind::kGrow, std::move(all),
                   need_text(state.policy, job.request, size) + "; " + growth.text);
  }
}

std::optional<GangPlacement> place_service(const DecisionState& state, const JobRequest& job,
                                           int account, const FreeCapacity& free) {
  const int least = job.roles.front().replicas_min;
  const int wanted = service_size(state.policy, job).wanted;
  const int more = largest_that(wanted - least, [&](int count) {
    return state.usage.admits(account, amounts_wanted(state, job, GangSize{least + count})) &&
           place_gang(free, {job, {least + count}, state.weights}).has_value();
  });
  return place_gang(free, {job, {least + more}, state.weights});
}

std::string complete_service(DecisionState& state, const PendingJob& job,
                             std::vector<ReplicaPlacement>& replicas) {
  const ServiceSize size = service_size(state.policy, job.request);
  std::string text = need_text(state.policy, job.request, size);
  const int more = size.wanted - static_cast<int>(replicas.size());
  if (more <= 0) return text;
  const ServiceGrowth growth = grow_service(state, job.request, replicas, more, job.completed);
  replicas.insert(replicas.end(), growth.replicas.begin(), growth.replicas.end());
  order_gang(state.free.domains(), job.request, replicas);
  return text + (growth.replicas.empty() ? fmt::format("; for {} there is no room", more)
                                         : "; " + growth.text);
}

}  // namespace regatta::sched
