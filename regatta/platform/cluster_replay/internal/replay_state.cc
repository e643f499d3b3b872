#include "regatta/platform/cluster_replay/internal/replay_state.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"

namespace regatta::cluster_replay {
namespace {

constexpr Seconds kNever{-1};
constexpr EnumNames<4> kHealthEvents = {"ready", "cordon", "drain", "fail"};

Seconds first_time(const ReplayInput& input) {
  return input.jobs.empty() ? Seconds{0} : input.jobs.front().request.submitted;
}

}  // namespace

ReplayState::ReplayState(const ReplayInput& input, const ReplayOptions& options)
    : input_(input),
      options_(options),
      now_(first_time(input).value),
      jobs_(input.jobs.size()),
      ledger_(input.nodes, input.jobs),
      curves_(first_time(input)),
      log_(options.log) {
  snapshot_.nodes = input.nodes;
  snapshot_.now = {now_};
  queue_.quotas = input.quotas;
  result_.jobs.resize(input.jobs.size());
  for (std::size_t i = 0; i < input.jobs.size(); ++i) {
    const TracedJob& job = input.jobs[i];
    JobOutcome& outcome = result_.jobs[i];
    outcome.submitted = job.request.submitted;
    outcome.first_start = kNever;
    outcome.ended = kNever;
    outcome.devices = static_cast<int>(sched::devices_min(job.request) + 0.999);
    outcome.priority = job.request.priority;
  }
}

std::vector<PlannedEnd> ReplayState::take_planned_ends() {
  return std::exchange(planned_, {});
}

CurvePoint ReplayState::level() const {
  CurvePoint level;
  const double devices = std::max(1.0, ledger_.devices());
  level.allocated_share = ledger_.allocated() / devices;
  double idle = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].rate <= 0 || now_ < runs_[i].begun)
      idle += sched::devices_of(snapshot_.running[i].request, snapshot_.running[i].replicas);
  level.busy_share = level.allocated_share - idle / devices;
  level.fragmentation = ledger_.fragmentation();
  level.waiting_jobs = static_cast<double>(queue_.jobs.size());
  level.waiting_devices = waiting_devices_;
  return level;
}

void ReplayState::advance(double now) {
  if (now <= now_) return;
  curves_.hold(level(), {now});
  now_ = now;
  snapshot_.now = {now};
}

Result<int> ReplayState::index_of(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  if (found != by_name_.end()) return found->second;
  return Error{Code::kConflict,
               fmt::format("job {}: the decision names it, and it neither waits nor runs", name)};
}

void ReplayState::set_pending(int job, sched::JobRequest request) {
  Job& state = at(jobs_, job);
  state.pending = static_cast<int>(queue_.jobs.size());
  state.pending_since = now_;
  waiting_devices_ += at(result_.jobs, job).devices;
  queue_.jobs.push_back({std::move(request), {state.completed}, state.evictions});
  pending_jobs_.push_back(job);
}

sched::JobRequest ReplayState::take_pending(int job) {
  Job& state = at(jobs_, job);
  const int index = std::exchange(state.pending, -1);
  waiting_devices_ -= at(result_.jobs, job).devices;
  sched::JobRequest request = std::move(at(queue_.jobs, index).request);
  if (as_index(index) + 1 != queue_.jobs.size()) {
    at(queue_.jobs, index) = std::move(queue_.jobs.back());
    at(pending_jobs_, index) = pending_jobs_.back();
    at(jobs_, pending_jobs_.back()).pending = index;
  }
  queue_.jobs.pop_back();
  pending_jobs_.pop_back();
  return request;
}

sched::JobRequest ReplayState::take_running(int job) {
  Job& state = at(jobs_, job);
  const int index = std::exchange(state.running, -1);
  ++state.version;
  sched::RunningJob& running = at(snapshot_.running, index);
  ledger_.give_back(running.request, running.replicas);
  sched::JobRequest request = std::move(running.request);
  if (as_index(index) + 1 != runs_.size()) {
    running = std::move(snapshot_.running.back());
    at(runs_, index) = runs_.back();
    at(run_jobs_, index) = run_jobs_.back();
    at(jobs_, run_jobs_.back()).running = index;
  }
  snapshot_.running.pop_back();
  runs_.pop_back();
  run_jobs_.pop_back();
  return request;
}

Status ReplayState::submit(int job) {
  sched::JobRequest request = at(input_.jobs, job).request;
  if (!by_name_.emplace(request.name, job).second)
    return Error{Code::kInvalidInput,
                 fmt::format("job {}: two jobs have this name; rename one", request.name)};
  if (options_.estimates_run_times && request.run_time.median.value <= 0)
    request.run_time = estimator_.estimate(request);
  log_.add(now_, "submit", request.name);
  set_pending(job, std::move(request));
  return {};
}

bool ReplayState::finish(const PlannedEnd& end) {
  if (at(jobs_, end.job).version != end.version) return false;
  const sched::JobRequest request = take_running(end.job);
  const TracedJob& traced = at(input_.jobs, end.job);
  estimator_.add(request, traced.run_time);
  JobOutcome& outcome = at(result_.jobs, end.job);
  outcome.ended = {now_};
  outcome.delay = Seconds{now_} - outcome.submitted - traced.run_time;
  result_.work_device_time += traced.run_time * sched::devices_min(request);
  result_.last_end = {now_};
  log_.add(now_, "end", request.name);
  return true;
}

void ReplayState::run_from(int job, double completed, bool restarts) {
  Job& state = at(jobs_, job);
  sched::RunningJob& running = at(snapshot_.running, state.running);
  JobRun& run = at(runs_, state.running);
  ++state.version;
  run.completed = completed;
  run.begun = now_ + (restarts ? running.request.checkpointing.restart.value : 0);
  run.rate = sched::is_degraded(snapshot_, running)
                 ? 0
                 : work_rate(running.request, running.replicas, snapshot_.nodes);
  running.started = {now_};
  running.checkpointed = {now_};
  running.completed = {completed};
  if (run.rate <= 0) return;
  const double left = at(input_.jobs, job).run_time.value - completed;
  planned_.push_back({run.begun + std::max(0.0, left) / run.rate, job, state.version});
}

void ReplayState::lose_work(int job, double kept) {
  Job& state = at(jobs_, job);
  const sched::RunningJob& running = at(snapshot_.running, state.running);
  const double lost = std::max(0.0, work_at(at(runs_, state.running), now_) - kept);
  at(result_.jobs, job).lost += {lost};
  result_.lost_device_time += {lost * sched::devices_of(running.request, running.replicas)};
}

Status ReplayState::start(int job, const sched::SchedulingAction& action) {
  Job& state = at(jobs_, job);
  if (state.pending < 0)
    return Error{Code::kConflict, fmt::format("job {}: it is started and does not wait; the "
                                              "decision cannot be carried out",
                                              action.job)};
  REGATTA_TRY_DO(ledger_.take(at(queue_.jobs, state.pending).request, action.replicas));
  JobOutcome& outcome = at(result_.jobs, job);
  outcome.pending += {now_ - state.pending_since};
  sched::RunningJob running;
  running.request = take_pending(job);
  running.replicas = action.replicas;
  if (outcome.first_start == kNever) {
    outcome.first_start = {now_};
    if (options_.on_first_start) options_.on_first_start(running.request, {now_});
  }
  state.running = static_cast<int>(snapshot_.running.size());
  snapshot_.running.push_back(std::move(running));
  runs_.emplace_back();
  run_jobs_.push_back(job);
  run_from(job, state.completed, state.evictions > 0);
  log_.add(now_, "start", action.job, action.replicas);
  return {};
}

Status ReplayState::evict(int job, const sched::SchedulingAction& action) {
  Job& state = at(jobs_, job);
  if (state.running < 0)
    return Error{Code::kConflict, fmt::format("job {}: it is evicted and does not run; the "
                                              "decision cannot be carried out",
                                              action.job)};
  const sched::Checkpointing& checkpointing =
      at(snapshot_.running, state.running).request.checkpointing;
  state.completed = checkpointed_work(at(runs_, state.running), checkpointing, now_);
  lose_work(job, state.completed);
  ++state.evictions;
  ++at(result_.jobs, job).evictions;
  ++result_.evictions;
  curves_.count_eviction();
  set_pending(job, take_running(job));
  log_.add(now_, "evict", action.job);
  return {};
}

Status ReplayState::change_places(int job, const sched::SchedulingAction& action) {
  Job& state = at(jobs_, job);
  if (state.running < 0)
    return Error{Code::kConflict, fmt::format("job {}: its places change and it does not run; the "
                                              "decision cannot be carried out",
                                              action.job)};
  sched::RunningJob& running = at(snapshot_.running, state.running);
  const JobRun& run = at(runs_, state.running);
  const bool is_resize =
      action.kind == sched::ActionKind::kShrink || action.kind == sched::ActionKind::kGrow;
  double kept = work_at(run, now_);
  if (!is_resize) kept = checkpointed_work(run, running.request.checkpointing, now_);
  lose_work(job, kept);
  (is_resize ? result_.resizes : result_.moves) += 1;
  ledger_.give_back(running.request, running.replicas);
  REGATTA_TRY_DO(ledger_.take(running.request, action.replicas));
  running.replicas = action.replicas;
  run_from(job, kept, true);
  log_.add(now_, is_resize ? "resize" : "move", action.job, action.replicas);
  return {};
}

Status ReplayState::apply(const sched::SchedulingDecision& decision) {
  for (const sched::SchedulingAction& action : decision.actions) {
    REGATTA_TRY(job, index_of(action.job));
    switch (action.kind) {
      case sched::ActionKind::kStart:
        REGATTA_TRY_DO(start(job, action));
        break;
      case sched::ActionKind::kEvict:
        REGATTA_TRY_DO(evict(job, action));
        break;
      case sched::ActionKind::kShrink:
      case sched::ActionKind::kGrow:
      case sched::ActionKind::kReplace:
      case sched::ActionKind::kMove:
        REGATTA_TRY_DO(change_places(job, action));
        break;
    }
  }
  return {};
}

Status ReplayState::set_health(const NodeEvent& event) {
  if (event.node < 0 || as_index(event.node) >= snapshot_.nodes.size())
    return Error{Code::kInvalidInput,
                 fmt::format("node event at {} s: there is no node {}; give 0 to {}",
                             event.at.value, event.node, snapshot_.nodes.size() - 1)};
  sched::ClusterNode& node = at(snapshot_.nodes, event.node);
  const bool changes_work =
      (node.health == sched::NodeHealth::kFailed) != (event.health == sched::NodeHealth::kFailed);
  node.health = event.health;
  log_.add(now_, enum_name(kHealthEvents, event.health), node.name);
  if (changes_work) node_changed(event.node);
  return {};
}

void ReplayState::node_changed(int node) {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const sched::RunningJob& running = snapshot_.running[i];
    if (std::none_of(running.replicas.begin(), running.replicas.end(),
                     [&](const sched::ReplicaPlacement& replica) { return replica.node == node; }))
      continue;
    const bool was_degraded = runs_[i].rate <= 0;
    const bool is_degraded = sched::is_degraded(snapshot_, running);
    if (was_degraded == is_degraded) continue;
    double kept = runs_[i].completed;
    if (!was_degraded) {
      kept = checkpointed_work(runs_[i], running.request.checkpointing, now_);
      lose_work(run_jobs_[i], kept);
    }
    const Seconds started = running.started;
    run_from(run_jobs_[i], kept, true);
    snapshot_.running[i].started = started;
    snapshot_.running[i].completed = {
        std::max(0.0, kept - (now_ - started.value))};  // so that work until now is `kept`
  }
}

void ReplayState::refresh_checkpoints() {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    sched::RunningJob& running = snapshot_.running[i];
    running.checkpointed = {
        std::max(running.started.value,
                 std::min(now_, checkpoint_time(runs_[i], running.request.checkpointing, now_)))};
  }
}

void ReplayState::update_demands() {
  if (!options_.update_demand) return;
  const auto update = [&](sched::JobRequest& job) {
    if (job.demand) options_.update_demand({now_}, job.name, *job.demand);
  };
  for (sched::RunningJob& job : snapshot_.running)
    update(job.request);
  for (sched::PendingJob& job : queue_.jobs)
    update(job.request);
}

ReplayResult ReplayState::finish_result(Seconds measured_until) {
  const CurvePoint mean = curves_.mean(options_.measured_from, measured_until);
  result_.allocated_share = mean.allocated_share;
  result_.busy_share = mean.busy_share;
  result_.fragmentation = mean.fragmentation;
  result_.waiting_jobs = mean.waiting_jobs;
  result_.curves = curves_.points();
  result_.logged_events = log_.lines();
  result_.log_hash = log_.hash();
  for (const JobOutcome& job : result_.jobs)
    if (job.ended == kNever) ++result_.unfinished;
  summarize_jobs(result_);
  return std::move(result_);
}

}  // namespace regatta::cluster_replay
