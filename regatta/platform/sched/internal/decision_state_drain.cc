// Jobs leave nodes that are draining, or likely to fail, when that costs less than staying:
// sched/internal/decision_state.h.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_progress.h"

namespace regatta::sched {
namespace {

// A part of a checkpoint interval, or of the loss of leaving at the next checkpoint: so little
// is no reason to wait for that.
constexpr double kFreshPart = 0.05;

std::vector<int> distinct_nodes(std::span<const ReplicaPlacement> replicas) {
  std::vector<int> nodes;
  for (const ReplicaPlacement& replica : replicas)
    nodes.push_back(replica.node);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// The sum over the nodes: one failure loses all replicas on its node.
double failures_per_day(const DecisionState& state, std::span<const ReplicaPlacement> replicas) {
  double sum = 0;
  for (const int node : distinct_nodes(replicas))
    sum += state.free.failures_per_day(node);
  return sum;
}

// The costs of leaving nodes with so many failures a day more than others now and later, and of
// staying until the job ends, or for a day where its end is not known.
reliability::DrainDecision drain_decision(const DecisionState& state, const RunningJob& job,
                                          double more_failures_per_day) {
  const Seconds now = state.snapshot.now;
  const Seconds left = end_time(state.snapshot, job, 0.5) - now;
  reliability::JobAtRisk risk = job_at_risk(state.snapshot, job);
  // A job that moves continues from the checkpoint that it has: none is saved for the move.
  risk.save = {std::numeric_limits<double>::infinity()};
  return reliability::decide_drain(risk,
                                   reliability::rate_of(more_failures_per_day, reliability::kDay),
                                   std::isfinite(left.value) ? left : reliability::kDay);
}

bool is_fresh(const DecisionState& state, const RunningJob& job,
              const reliability::DrainDecision& decision) {
  const Seconds interval = job.request.checkpointing.interval;
  if (interval.value <= 0) return false;
  return state.snapshot.now - job.checkpointed <= interval * kFreshPart ||
         decision.now <= decision.next_checkpoint * (1 + kFreshPart);
}

// A job without checkpoints gains nothing by waiting for one.
bool leaves_now(const DecisionState& state, const RunningJob& job, bool is_draining,
                const reliability::DrainDecision& decision) {
  if (job.request.checkpointing.interval.value <= 0) return decision.now < decision.later;
  if (is_draining || decision.time == reliability::DrainTime::kNextCheckpoint)
    return decision.time == reliability::DrainTime::kNow || is_fresh(state, job, decision);
  return decision.time == reliability::DrainTime::kNow;
}

struct Leaving {
  std::vector<ReplicaPlacement> kept;
  std::vector<ReplicaPlacement> left;  // on draining nodes, or on nodes known to be of some risk
  bool is_draining = false;
};

Leaving leaving(const DecisionState& state, const RunningJob& job) {
  Leaving made;
  for (const ReplicaPlacement& replica : job.replicas) {
    const ClusterNode& node = at(state.snapshot.nodes, replica.node);
    const bool drains = node.health == NodeHealth::kDraining;
    made.is_draining |= drains;
    const bool is_risky = node.failures_per_day > 0 ||
                          std::binary_search(state.precautions.failing.begin(),
                                             state.precautions.failing.end(), replica.node);
    (drains || is_risky ? made.left : made.kept).push_back(replica);
  }
  if (!made.is_draining) return made;
  // Risk alone moves no replica of a job that moves for another reason.
  made.kept.clear();
  made.left.clear();
  for (const ReplicaPlacement& replica : job.replicas)
    (at(state.snapshot.nodes, replica.node).health == NodeHealth::kDraining ? made.left : made.kept)
        .push_back(replica);
  return made;
}

// Leaves fewer nodes, those that fail most.
void keep_safer_half(const DecisionState& state, Leaving& parts) {
  std::vector<int> nodes = distinct_nodes(parts.left);
  std::stable_sort(nodes.begin(), nodes.end(), [&](int a, int b) {
    return state.free.failures_per_day(a) > state.free.failures_per_day(b);
  });
  nodes.resize(nodes.size() / 2);
  const auto kept = std::stable_partition(
      parts.left.begin(), parts.left.end(), [&](const ReplicaPlacement& replica) {
        return std::find(nodes.begin(), nodes.end(), replica.node) != nodes.end();
      });
  parts.kept.insert(parts.kept.end(), kept, parts.left.end());
  parts.left.erase(kept, parts.left.end());
}

// Nodes that fail again come last, as a cheaper place on one of them is no reason to stay.
std::optional<GangPlacement> place_elsewhere(DecisionState& state, const RunningJob& job,
                                             const std::vector<ReplicaPlacement>& kept) {
  const GangSize size = replica_counts(job.request, job.replicas);
  const auto place = [&] {
    return place_gang(state.free, {job.request, size, state.weights, kept});
  };
  std::vector<int> closed;
  for (const int node : state.precautions.failing)
    if (state.free.free(node).is_open) closed.push_back(node);
  set_all_open(state.free, closed, false);
  auto placement = place();
  set_all_open(state.free, closed, true);
  return placement || closed.empty() ? placement : place();
}

struct Departure {
  Leaving parts;
  std::vector<ReplicaPlacement> moved;     // new places of those that leave
  std::vector<ReplicaPlacement> replicas;  // all of the job then
  reliability::DrainDecision decision;
};

// The departure that loses less than staying is expected to lose more: reliability/expected_loss.h
// decides. All risky nodes are left, or as many as there are safer places for.
std::optional<Departure> find_departure(DecisionState& state, const RunningJob& job) {
  for (Leaving parts = leaving(state, job); !parts.left.empty(); keep_safer_half(state, parts)) {
    // First as if other nodes never failed: most jobs stay, and need no search for places.
    const auto alone = drain_decision(state, job, failures_per_day(state, parts.left));
    if (!leaves_now(state, job, parts.is_draining, alone)) break;
    if (auto placement = place_elsewhere(state, job, parts.kept)) {
      Departure found{
          .parts = parts, .moved = placement->replicas, .replicas = parts.kept, .decision = {}};
      found.replicas.insert(found.replicas.end(), found.moved.begin(), found.moved.end());
      const double more =
          failures_per_day(state, job.replicas) - failures_per_day(state, found.replicas);
      found.decision = drain_decision(state, job, std::max(0.0, more));
      if (leaves_now(state, job, parts.is_draining, found.decision)) return found;
    }
    if (parts.is_draining) break;  // all of the nodes go
  }
  return std::nullopt;
}

void leave_nodes(DecisionState& state, int index) {
  const RunningJob& job = at(state.snapshot.running, index);
  auto departure = find_departure(state, job);
  if (!departure) return;
  const reliability::JobAtRisk risk = job_at_risk(state.snapshot, job);
  const std::string reason =
      fmt::format("leaves {} for {}: moving loses {} of the job, staying was expected to lose {}",
                  place_text(state, job.request, departure->parts.left),
                  place_text(state, job.request, departure->moved),
                  lost_time_text(risk.since_checkpoint + risk.restart),
                  lost_time_text({departure->decision.later / risk.devices}));
  take(state, job.request, departure->moved);
  give(state, job.request, departure->parts.left);
  JobChange& change = at(state.running, index);
  change.replicas = std::move(departure->replicas);
  order_gang(state.free.domains(), job.request, change.replicas);
  change.is_changed = true;
  add_action(state, ActionKind::kMove, job.request, change.replicas, reason);
}

}  // namespace

void empty_draining_nodes(DecisionState& state) {
  if (state.policy.moves <= 0) return;
  for (int i = 0; i < static_cast<int>(state.running.size()); ++i) {
    const RunningJob& job = at(state.snapshot.running, i);
    if (at(state.running, i).is_changed || is_degraded(state.snapshot, job)) continue;
    if (job.request.is_preemptible) leave_nodes(state, i);
  }
}

}  // namespace regatta::sched
