// Jobs leave nodes that are draining, or likely to fail, when that costs less than staying:
// sched/internal/decision_state.h.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_progress.h"

namespace regatta::sched {
namespace {

constexpr double kFreshPart = 0.05;  // of a checkpoint interval: so fresh a checkpoint is no loss

// Device-seconds that the failures of these nodes are expected to cost until the job ends, or in a
// day where its end is not known.
double staying_loss(const DecisionState& state, const RunningJob& job,
                    std::span<const ReplicaPlacement> replicas) {
  double failures_per_day = 0;
  for (const ReplicaPlacement& replica : replicas)
    failures_per_day += at(state.snapshot.nodes, replica.node).failures_per_day;
  const Seconds left = end_time(state.snapshot, job, 0.5) - state.snapshot.now;
  return reliability::expected_loss(job_at_risk(state.snapshot, job),
                                    reliability::rate_of(failures_per_day, reliability::kDay),
                                    std::isfinite(left.value) ? left : reliability::kDay);
}

bool is_fresh(const DecisionState& state, const RunningJob& job) {
  const Seconds interval = job.request.checkpointing.interval;
  return interval.value > 0 && state.snapshot.now - job.checkpointed <= interval * kFreshPart;
}

struct Leaving {
  std::vector<ReplicaPlacement> kept;
  std::vector<ReplicaPlacement> left;  // on draining nodes, or on nodes of some risk
  bool is_draining = false;
};

Leaving leaving(const DecisionState& state, const RunningJob& job) {
  Leaving made;
  for (const ReplicaPlacement& replica : job.replicas) {
    const ClusterNode& node = at(state.snapshot.nodes, replica.node);
    const bool drains = node.health == NodeHealth::kDraining;
    made.is_draining |= drains;
    (drains || node.failures_per_day > 0 ? made.left : made.kept).push_back(replica);
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

// Moves the replicas where the loss of the move is below what staying is expected to cost more.
void leave_nodes(DecisionState& state, int index) {
  const RunningJob& job = at(state.snapshot.running, index);
  const Leaving parts = leaving(state, job);
  if (parts.left.empty()) return;
  const double move_loss = eviction_loss(state.snapshot, job);
  const double stay_loss = staying_loss(state, job, parts.left);
  const bool drains_now = parts.is_draining && is_fresh(state, job);
  if (!drains_now && stay_loss <= move_loss) return;
  const GangSize size = replica_counts(job.request, job.replicas);
  const auto placement = place_gang(state.free, {job.request, size, state.weights, parts.kept});
  if (!placement) return;
  if (!drains_now && stay_loss - staying_loss(state, job, placement->replicas) <= move_loss) return;
  take(state, job.request, placement->replicas);
  give(state, job.request, parts.left);
  JobChange& change = at(state.running, index);
  change.replicas = parts.kept;
  change.replicas.insert(change.replicas.end(), placement->replicas.begin(),
                         placement->replicas.end());
  order_gang(state.free.domains(), job.request, change.replicas);
  change.is_changed = true;
  add_action(state, ActionKind::kMove, job.request, change.replicas,
             fmt::format("leaves {} for {}: moving loses {} of the job, staying was expected to "
                         "lose {}",
                         place_text(state, job.request, parts.left),
                         place_text(state, job.request, placement->replicas),
                         format_duration(state.snapshot.now - job.checkpointed +
                                         job.request.checkpointing.restart),
                         format_duration(Seconds{
                             stay_loss / std::max(1e-9, devices_of(job.request, job.replicas))})));
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
