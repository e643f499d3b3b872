// Jobs leave devices that they share and whose budget is kept no more:
// sched/internal/decision_state.h.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_progress.h"

namespace regatta::sched {
namespace {

int index_of(const DecisionState& state, const JobRequest* job) {
  const auto& running = state.snapshot.running;
  const auto found = std::find_if(running.begin(), running.end(),
                                  [job](const RunningJob& each) { return &each.request == job; });
  return found == running.end() ? -1 : static_cast<int>(found - running.begin());
}

// A service loses no work by a restart: it serves nothing in that time.
double restart_loss(const DecisionState& state, const RunningJob& job) {
  return devices_of(job.request, job.replicas) * job.request.checkpointing.restart.value *
         state.policy.budget.missed_price;
}

struct LeavingJob {
  int running = 0;
  double loss = 0;
};

// The jobs that may leave the device, with a latency target or without, that which loses least
// first.
std::vector<LeavingJob> jobs_that_may_leave(const DecisionState& state, DeviceKey device,
                                            bool have_target) {
  std::vector<LeavingJob> jobs;
  const auto there = state.mixes->devices().find(device);
  if (there == state.mixes->devices().end()) return jobs;
  for (const MixOccupant& occupant : there->second) {
    if (has_latency_target(occupant.job->job_class) != have_target) continue;
    // Eviction is no question for jobs with a target: they move or stay.
    if (!have_target && !occupant.job->is_preemptible) continue;
    const int index = index_of(state, occupant.job);
    if (index < 0 || at(state.running, index).is_changed) continue;
    const RunningJob& job = at(state.snapshot.running, index);
    jobs.push_back(
        {.running = index,
         .loss = have_target ? restart_loss(state, job) : eviction_loss(state.snapshot, job)});
  }
  std::sort(jobs.begin(), jobs.end(), [&](const LeavingJob& a, const LeavingJob& b) {
    if (a.loss != b.loss) return a.loss < b.loss;
    return at(state.snapshot.running, a.running).request.name <
           at(state.snapshot.running, b.running).request.name;
  });
  return jobs;
}

std::string device_text(const DecisionState& state, DeviceKey device) {
  return fmt::format("device {} of node {}", device.second,
                     at(state.snapshot.nodes, device.first).name);
}

// Goes to free devices where there are some, else it waits for others.
void leave_device(DecisionState& state, int index, DeviceKey device) {
  const RunningJob& job = at(state.snapshot.running, index);
  JobChange& change = at(state.running, index);
  const GangSize size = replica_counts(job.request, change.replicas);
  give(state, job.request, change.replicas);
  const std::string why = fmt::format(
      "the jobs on {} keep their budget no more, and it loses least", device_text(state, device));
  std::optional<GangPlacement> placement;
  if (state.policy.moves > 0 && !is_degraded(state.snapshot, job))
    placement = place_gang(state.free, {job.request, size, state.weights});
  change.is_changed = true;
  if (placement) {
    change.replicas = placement->replicas;
    take(state, job.request, change.replicas);
    add_action(state, ActionKind::kMove, job.request, change.replicas,
               fmt::format("{} on {}: {}", resume_text(state.snapshot, job),
                           place_text(state, job.request, change.replicas), why));
    return;
  }
  change.replicas.clear();
  change.is_evicted = true;
  add_action(state, ActionKind::kEvict, job.request, {}, fmt::format("leaves: {}", why));
}

bool is_on(const ReplicaPlacement& replica, DeviceKey device) {
  return replica.node == device.first &&
         (replica.devices >> static_cast<unsigned>(device.second) & 1U) != 0;
}

// Moves what a job with a latency target has on the device to free devices of the same type, where
// what the jobs on the device lose in a day without it, or until it ends, is more than its restart
// loses. Whether it did.
bool move_to_free_device(DecisionState& state, const LeavingJob& leaving, DeviceKey device) {
  const RunningJob& job = at(state.snapshot.running, leaving.running);
  if (is_degraded(state.snapshot, job)) return false;
  const Seconds left = end_time(state.snapshot, job, 0.5) - state.snapshot.now;
  const double days = std::min(1.0, left / reliability::kDay);
  const double gain = days * (state.mixes->daily_loss(device, nullptr) -
                              state.mixes->daily_loss(device, &job.request));
  if (!(gain > leaving.loss)) return false;
  std::vector<ReplicaPlacement> moved;
  std::vector<ReplicaPlacement> kept;
  for (const ReplicaPlacement& replica : job.replicas)
    (is_on(replica, device) ? moved : kept).push_back(replica);
  JobRequest request = job.request;
  request.device_types = {at(state.snapshot.nodes, device.first).device_type};
  const GangSize size = replica_counts(job.request, job.replicas);
  give(state, job.request, moved);
  const auto placement = place_gang(state.free, {request, size, state.weights, kept});
  const bool is_elsewhere =
      placement && std::none_of(placement->replicas.begin(), placement->replicas.end(),
                                [&](const ReplicaPlacement& each) { return is_on(each, device); });
  take(state, job.request, is_elsewhere ? placement->replicas : moved);
  if (!is_elsewhere) return false;
  kept.insert(kept.end(), placement->replicas.begin(), placement->replicas.end());
  order_gang(state.free.domains(), job.request, kept);
  JobChange& change = at(state.running, leaving.running);
  change.replicas = std::move(kept);
  change.is_changed = true;
  add_action(
      state, ActionKind::kMove, job.request, change.replicas,
      fmt::format("continues on {}: the jobs on {} keep their budget no more, none without "
                  "a latency target can leave, and of the others its restart of {} loses "
                  "least",
                  place_text(state, job.request, placement->replicas), device_text(state, device),
                  format_duration(job.request.checkpointing.restart)));
  return true;
}

// Whether a job left the device.
bool make_one_leave(DecisionState& state, DeviceKey device) {
  const std::vector<LeavingJob> others = jobs_that_may_leave(state, device, false);
  if (!others.empty()) {
    leave_device(state, others.front().running, device);
    return true;
  }
  if (state.policy.moves <= 0) return false;
  const std::vector<LeavingJob> with_target = jobs_that_may_leave(state, device, true);
  return std::any_of(with_target.begin(), with_target.end(), [&](const LeavingJob& job) {
    return move_to_free_device(state, job, device);
  });
}

}  // namespace

void mend_mixes(DecisionState& state) {
  if (!state.mixes) return;
  for (const DeviceMix& mix : state.snapshot.mixes) {
    const DeviceKey device{mix.node, mix.device};
    while (!state.mixes->keeps_budget(device) && make_one_leave(state, device)) {
    }
  }
}

}  // namespace regatta::sched
