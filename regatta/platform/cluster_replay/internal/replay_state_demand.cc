// Demand over time, and what services miss of it: cluster_replay/internal/replay_state.h.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/cluster_replay/internal/replay_state.h"

namespace regatta::cluster_replay {
namespace {

constexpr double kRounding = 1e-6;

// Intervals of the demand that ended until `now`, with those before its submission.
std::size_t ended_intervals(const TracedJob& job, double now) {
  const double since = now - job.request.submitted.value;
  const auto ended = static_cast<std::size_t>(
      std::max(0.0, std::floor(since / job.demand.interval.value + kRounding)));
  return ended + as_index(job.demand.past);
}

double amount_at(const TracedJob& job, std::size_t interval) {
  const std::vector<float>& amounts = job.demand.amounts;
  return interval < amounts.size() ? static_cast<double>(std::max(0.0F, amounts[interval])) : 0;
}

}  // namespace

sched::JobRequest& ReplayState::request_of(int job) {
  const Job& state = at(jobs_, job);
  return state.running >= 0 ? at(snapshot_.running, state.running).request
                            : at(queue_.jobs, state.pending).request;
}

double ReplayState::served_by_replicas(int job) const {
  const std::vector<double>& ready = at(jobs_, job).ready;
  const auto working = std::count_if(ready.begin(), ready.end(),
                                     [&](double time) { return time <= now_ + kRounding; });
  return static_cast<double>(working) * at(input_.jobs, job).demand.per_replica;
}

void ReplayState::set_demand(int job) {
  const TracedJob& traced = at(input_.jobs, job);
  Job& state = at(jobs_, job);
  state.demand = amount_at(traced, ended_intervals(traced, now_));
  if (state.running < 0) return;
  double share = state.demand;
  if (traced.demand.is_service()) {
    const double served = std::max(served_by_replicas(job), traced.demand.per_replica);
    share = std::min(1.0, state.demand / served) * traced.demand.full_share;
  }
  use_.set_demand(job, share);
}

// Replicas that were not there before work after their restart; those of a first start at once.
void ReplayState::set_ready(int job, std::span<const sched::ReplicaPlacement> before) {
  Job& state = at(jobs_, job);
  const sched::RunningJob& running = at(snapshot_.running, state.running);
  const bool is_first = before.empty() && state.evictions == 0 && state.ready.empty();
  const double restart = is_first ? 0 : running.request.checkpointing.restart.value;
  std::vector<double> ready;
  for (const sched::ReplicaPlacement& replica : running.replicas) {
    const auto kept = std::find(before.begin(), before.end(), replica);
    ready.push_back(kept == before.end() ? now_ + restart : at(state.ready, kept - before.begin()));
  }
  state.ready = std::move(ready);
}

int MissedIntervals::*ReplayState::why_missed(int job) const {
  const Job& state = at(jobs_, job);
  if (state.demand <= 0) return nullptr;
  if (state.running < 0) return &MissedIntervals::away;
  const JobRun& run = at(runs_, state.running);
  if (run.is_degraded() || now_ < run.begun) return &MissedIntervals::away;
  if (at(input_.jobs, job).demand.is_service() &&
      served_by_replicas(job) < state.demand * (1 - kRounding))
    return &MissedIntervals::replicas;
  return use_.served(job).is_met ? nullptr : &MissedIntervals::devices;
}

// The last `seconds` before the state changes.
void ReplayState::watch_demands(double seconds) {
  for (const int job : active_) {
    Job& state = at(jobs_, job);
    if (mixing::has_latency_target(at(result_.jobs, job).job_class)) {
      if (state.missed == nullptr) state.missed = why_missed(job);
      continue;
    }
    const double asked = state.demand * at(result_.jobs, job).devices * seconds;
    const bool is_away = why_missed(job) == &MissedIntervals::away;
    delayable_ += asked;
    delayed_ += asked * (is_away ? 1 : 1 - use_.served(job).mean);
  }
}

void ReplayState::extend_history(int job, double amount) {
  sched::JobRequest& request = request_of(job);
  if (request.demand) request.demand->history.push_back(amount);
}

void ReplayState::begin_interval() {
  for (const int job : active_) {
    const TracedJob& traced = at(input_.jobs, job);
    Job& state = at(jobs_, job);
    JobOutcome& outcome = at(result_.jobs, job);
    const bool was_started =
        outcome.first_start.value >= 0 && outcome.first_start.value <= interval_begun_;
    if (was_started && state.demand > 0 && mixing::has_latency_target(outcome.job_class)) {
      ++outcome.intervals;
      if (state.missed != nullptr) {
        ++(outcome.missed.*state.missed);
        curves_.count_missed();
      }
    }
    state.missed = nullptr;
    const std::size_t ended = ended_intervals(traced, now_);
    sched::JobRequest& request = request_of(job);
    if (request.demand)
      for (std::size_t i = request.demand->history.size(); i < ended; ++i)
        extend_history(job, amount_at(traced, i));
    set_demand(job);
  }
  interval_begun_ = now_;
  use_.begin_interval();
  if (options_.profile_interval.value > 0 && now_ >= next_profiles_) refresh_profiles();
}

void ReplayState::refresh_profiles() {
  next_profiles_ = now_ + options_.profile_interval.value;
  for (const int job : active_) {
    const TracedJob& traced = at(input_.jobs, job);
    const std::size_t ended = std::min(ended_intervals(traced, now_), traced.demand.amounts.size());
    sched::JobRequest& request = request_of(job);
    if (traced.demand.is_service() || ended == 0) continue;
    const Seconds start =
        traced.request.submitted - traced.demand.interval * static_cast<double>(traced.demand.past);
    const std::span<const float> seen(traced.demand.amounts.data(), ended);
    for (sched::Role& role : request.roles)
      if (role.duty.is_known()) role.duty = mixing::profile_of(seen, traced.demand.interval, start);
  }
}

// Devices of the smallest size, or of the demand, whose compute is at work.
double ReplayState::used_devices(int run) const {
  const JobRun& state = at(runs_, run);
  if (state.is_degraded() || now_ < state.begun) return 0;
  const int job = at(run_jobs_, run);
  const TracedJob& traced = at(input_.jobs, job);
  if (!traced.demand.is_known()) return state.rate() * state.devices_min;
  const double demand = at(jobs_, job).demand;
  const double served = use_.served(job).mean;
  if (!traced.demand.is_service()) return state.devices * demand * served;
  return std::min(demand, served_by_replicas(job)) / traced.demand.per_replica *
         traced.demand.full_share * traced.request.roles.front().devices * served;
}

}  // namespace regatta::cluster_replay
