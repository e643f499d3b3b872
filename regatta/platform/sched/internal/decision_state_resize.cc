// Elastic jobs grow into idle devices, where that pays: sched/internal/decision_state.h.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/service_size.h"

namespace regatta::sched {
namespace {

constexpr int kGrowthsMax = 1024;  // steps of one decision

// An elastic job that may grow.
struct Growth {
  const JobRequest* job = nullptr;
  int running = -1;   // index into the running jobs; else
  int pending = -1;   // a job that this decision starts
  Seconds remaining;  // on its smallest size
  std::vector<ReplicaPlacement> replicas;
  std::vector<ReplicaPlacement> more;
  bool is_done = false;

  double devices() const { return devices_of(*job, replicas) + devices_of(*job, more); }
};

// The next step of a job: as many replicas of a role as its subgroups have. Nothing at its largest.
GangSize next_step(const Growth& growth) {
  GangSize counts = replica_counts(*growth.job, growth.replicas);
  const std::vector<int> more = replica_counts(*growth.job, growth.more);
  for (std::size_t role = 0; role < counts.size(); ++role) {
    const Role& each = growth.job->roles[role];
    if (counts[role] + more[role] + each.subgroup_replicas > each.replicas_max) continue;
    GangSize step(counts.size());
    step[role] = each.subgroup_replicas;
    return step;
  }
  return {};
}

// Throughput that a device more brings, over that of a device of the smallest size.
double marginal_gain(const Growth& growth, const GangSize& step) {
  const double smallest = devices_min(*growth.job);
  const double more = devices_of(*growth.job, step);
  if (smallest <= 0 || more <= 0) return 0;
  const double now = growth.devices();
  const double gain = throughput_at(*growth.job, now + more) - throughput_at(*growth.job, now);
  return gain / more / (throughput_at(*growth.job, smallest) / smallest);
}

// Whether the time that the growth saves exceeds the restart that it costs.
bool pays(const Growth& growth) {
  if (growth.more.empty()) return false;
  if (growth.running < 0) return true;  // it starts now and needs no restart
  const double before = throughput_at(*growth.job, devices_of(*growth.job, growth.replicas));
  const double after = throughput_at(*growth.job, growth.devices());
  const double base = throughput_at(*growth.job, devices_min(*growth.job));
  // In one product: a time that is not known is infinite.
  const Seconds saved = growth.remaining * (base / before - base / after);
  return saved > growth.job->checkpointing.restart;
}

bool is_elastic(const JobRequest& job) {
  return std::any_of(job.roles.begin(), job.roles.end(),
                     [](const Role& role) { return role.replicas_max > role.replicas_min; });
}

std::vector<Growth> growths(const DecisionState& state) {
  std::vector<Growth> list;
  for (int i = 0; i < static_cast<int>(state.running.size()); ++i) {
    const RunningJob& job = at(state.snapshot.running, i);
    if (at(state.running, i).is_changed || !is_elastic(job.request) ||
        follows_demand(state.policy, job.request) || is_degraded(state.snapshot, job))
      continue;
    list.push_back(
        {.job = &job.request,
         .running = i,
         .remaining = remaining_time(job.request.run_time, work_done(state.snapshot, job), 0.5),
         .replicas = job.replicas});
  }
  for (int i = 0; i < static_cast<int>(state.started.size()); ++i) {
    const PendingJob& job = at(state.queue.jobs, i);
    if (at(state.started, i).empty() || !is_elastic(job.request) ||
        follows_demand(state.policy, job.request))
      continue;
    list.push_back({.job = &job.request,
                    .pending = i,
                    .remaining = remaining_time(job.request.run_time, job.completed, 0.5),
                    .replicas = at(state.started, i)});
  }
  return list;
}

// One step of the job that gains most by a device. False when none can grow.
bool grow_one(DecisionState& state, FreeCapacity& free, std::vector<Growth>& list) {
  Growth* best = nullptr;
  GangSize step_best;
  double gain_best = 0;
  for (Growth& growth : list) {
    if (growth.is_done) continue;
    GangSize step = next_step(growth);
    const double gain = step.empty() ? 0 : marginal_gain(growth, step);
    if (gain <= 0 || growth_limit(state, *growth.job, growth.replicas, step)) {
      growth.is_done = true;
    } else if (gain > gain_best) {
      best = &growth;
      step_best = std::move(step);
      gain_best = gain;
    }
  }
  if (best == nullptr) return false;
  std::vector<ReplicaPlacement> kept = best->replicas;
  kept.insert(kept.end(), best->more.begin(), best->more.end());
  GangSize size = replica_counts(*best->job, kept);
  for (std::size_t role = 0; role < size.size(); ++role)
    size[role] += step_best[role];
  const auto placement = place_gang(free, {*best->job, size, state.weights, kept});
  if (!placement) {
    best->is_done = true;
    return true;
  }
  for (const ReplicaPlacement& replica : placement->replicas) {
    free.take(at(best->job->roles, replica.role), replica);
    best->more.push_back(replica);
  }
  take(state, *best->job, placement->replicas);
  return true;
}

void apply(DecisionState& state, const Growth& growth) {
  std::vector<ReplicaPlacement> all = growth.replicas;
  all.insert(all.end(), growth.more.begin(), growth.more.end());
  order_gang(state.free.domains(), *growth.job, all);
  if (growth.running >= 0) {
    JobChange& change = at(state.running, growth.running);
    change.replicas = all;
    change.is_changed = true;
    add_action(state, ActionKind::kGrow, *growth.job, all,
               fmt::format("grows from {:g} to {:g} devices that are idle",
                           devices_of(*growth.job, growth.replicas), growth.devices()));
    return;
  }
  at(state.started, growth.pending) = all;
  for (SchedulingAction& action : state.decision.actions) {
    if (action.kind != ActionKind::kStart || action.job != growth.job->name) continue;
    action.replicas = all;
    action.reason += fmt::format("; it grows at once to {:g} devices", growth.devices());
  }
}

}  // namespace

void resize_elastic_jobs(DecisionState& state) {
  if (!state.policy.resizes) return;
  std::vector<Growth> list = growths(state);
  if (list.empty()) return;
  FreeCapacity free = free_beside_reservations(state);
  for (int i = 0; i < kGrowthsMax && grow_one(state, free, list); ++i) {
  }
  for (const Growth& growth : list) {
    if (pays(growth))
      apply(state, growth);
    else
      give(state, *growth.job, growth.more);
  }
}

}  // namespace regatta::sched
