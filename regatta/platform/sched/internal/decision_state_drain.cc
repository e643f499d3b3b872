// Jobs leave nodes that are draining, or likely to fail, when that costs less than staying:
// sched/internal/decision_state.h.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
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

double failures_per_day(const DecisionState& state, std::span<const ReplicaPlacement> replicas) {
  double sum = 0;
  for (const ReplicaPlacement& replica : replicas)
    sum += state.free.failures_per_day(replica.node);
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
                          std::binary_search(state.precautions.avoided.begin(),
                                             state.precautions.avoided.end(), replica.node);
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

// Moves the replicas where the loss of the move is below what staying is expected to cost more:
// reliability/expected_loss.h decides.
void leave_nodes(DecisionState& state, int index) {
  const RunningJob& job = at(state.snapshot.running, index);
  const Leaving parts = leaving(state, job);
  if (parts.left.empty()) return;
  const double here = failures_per_day(state, parts.left);
  // First as if other nodes never failed: most jobs stay, and need no search for places.
  if (!leaves_now(state, job, parts.is_draining, drain_decision(state, job, here))) return;
  const GangSize size = replica_counts(job.request, job.replicas);
  const auto placement = place_gang(state.free, {job.request, size, state.weights, parts.kept});
  if (!placement) return;
  const double more = std::max(0.0, here - failures_per_day(state, placement->replicas));
  const auto decision = drain_decision(state, job, more);
  if (!leaves_now(state, job, parts.is_draining, decision)) return;
  take(state, job.request, placement->replicas);
  give(state, job.request, parts.left);
  JobChange& change = at(state.running, index);
  change.replicas = parts.kept;
  change.replicas.insert(change.replicas.end(), placement->replicas.begin(),
                         placement->replicas.end());
  order_gang(state.free.domains(), job.request, change.replicas);
  change.is_changed = true;
  const reliability::JobAtRisk risk = job_at_risk(state.snapshot, job);
  add_action(state, ActionKind::kMove, job.request, change.replicas,
             fmt::format("leaves {} for {}: moving loses {} of the job, staying was expected to "
                         "lose {}",
                         place_text(state, job.request, parts.left),
                         place_text(state, job.request, placement->replicas),
                         lost_time_text(risk.since_checkpoint + risk.restart),
                         lost_time_text({decision.later / risk.devices})));
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
