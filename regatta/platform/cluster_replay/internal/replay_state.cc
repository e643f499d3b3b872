#include "regatta/platform/cluster_replay/internal/replay_state.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"

namespace regatta::cluster_replay {
namespace {

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
      use_(input.nodes, static_cast<int>(input.jobs.size()),
           {.interference = options.interference, .lease = options.lease, .link = options.link}),
      curves_(first_time(input)),
      log_(options.log) {
  snapshot_.nodes = input.nodes;
  snapshot_.now = {now_};
  for (sched::ClusterNode& node : snapshot_.nodes)
    if (node.failures.empty() && node.watched_since.value >= 0) node.watched_since = {now_};
  queue_.quotas = input.quotas;
  result_.jobs.resize(input.jobs.size());
  for (std::size_t i = 0; i < input.jobs.size(); ++i) {
    const TracedJob& job = input.jobs[i];
    JobOutcome& outcome = result_.jobs[i];
    outcome.name = job.request.name;
    outcome.submitted = job.request.submitted;
    outcome.first_start = kNever;
    outcome.ended = kNever;
    outcome.devices = static_cast<int>(sched::devices_min(job.request) + 0.999);
    outcome.priority = job.request.priority;
    outcome.job_class = job.request.job_class;
    const double interval = job.demand.interval.value;
    if (interval > 0 && (demand_interval_ <= 0 || interval < demand_interval_))
      demand_interval_ = interval;
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
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].is_degraded() || now_ < runs_[i].begun) idle += runs_[i].devices;
    const double used = used_devices(static_cast<int>(i)) / devices;
    level.used_share += used;
    if (mixing::has_latency_target(snapshot_.running[i].request.job_class))
      level.online_share += used;
  }
  // Jobs that share a device may have more than it together.
  level.busy_share = std::max(0.0, level.allocated_share - idle / devices);
  level.fragmentation = ledger_.fragmentation();
  level.waiting_jobs = static_cast<double>(queue_.jobs.size());
  level.waiting_devices = waiting_devices_;
  return level;
}

void ReplayState::add_costs(double now) {
  FailureCosts& costs = result_.failure_costs;
  const double time = now - now_;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const JobRun& run = runs_[i];
    const sched::RunningJob& job = snapshot_.running[i];
    const double devices = sched::devices_of(job.request, job.replicas);
    costs.held += {time * devices};
    if (run.is_degraded()) {
      costs.degraded += {time * devices};
      at(result_.jobs, at(run_jobs_, static_cast<int>(i))).degraded += {time};
      continue;
    }
    const double restarting = std::clamp(run.begun - now_, 0.0, time);
    const sched::Checkpointing& checkpointing = job.request.checkpointing;
    costs.restarting += {restarting * devices};
    at(result_.jobs, at(run_jobs_, static_cast<int>(i))).restarting += {restarting};
    if (checkpointing.interval.value > 0)
      costs.saving += {(time - restarting) * devices *
                       (checkpointing.write / (checkpointing.interval + checkpointing.write))};
  }
  costs.requeued += {time * requeued_devices_};
}

void ReplayState::advance(double now) {
  if (now <= now_) return;
  watch_demands(now - now_);
  curves_.hold(level(), {now});
  add_costs(now);
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
  if (state.evictions > 0) requeued_devices_ += sched::devices_min(request);
  queue_.jobs.push_back({std::move(request), {state.completed}, state.evictions});
  pending_jobs_.push_back(job);
}

sched::JobRequest ReplayState::take_pending(int job) {
  Job& state = at(jobs_, job);
  const int index = std::exchange(state.pending, -1);
  waiting_devices_ -= at(result_.jobs, job).devices;
  sched::JobRequest request = std::move(at(queue_.jobs, index).request);
  if (state.evictions > 0) requeued_devices_ -= sched::devices_min(request);
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
  use_.remove(job);
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
  const bool is_service = request.demand.has_value();
  set_pending(job, std::move(request));
  if (!at(input_.jobs, job).demand.is_known()) return {};
  active_.push_back(job);
  services_ += is_service ? 1 : 0;
  set_demand(job);
  return {};
}

bool ReplayState::finish(const PlannedEnd& end) {
  if (at(jobs_, end.job).version != end.version) return false;
  const sched::JobRequest request = take_running(end.job);
  const TracedJob& traced = at(input_.jobs, end.job);
  estimator_.add(request, traced.run_time);
  if (options_.on_end) options_.on_end(request, traced.run_time);
  JobOutcome& outcome = at(result_.jobs, end.job);
  outcome.ended = {now_};
  outcome.delay = Seconds{now_} - outcome.submitted - traced.run_time;
  result_.work_device_time += traced.run_time * sched::devices_min(request);
  result_.last_end = {now_};
  log_.add(now_, "end", request.name);
  if (traced.demand.is_known()) {
    std::erase(active_, end.job);
    services_ -= request.demand.has_value() ? 1 : 0;
  }
  return true;
}

void ReplayState::run_from(int job, double completed, bool restarts) {
  Job& state = at(jobs_, job);
  sched::RunningJob& running = at(snapshot_.running, state.running);
  const TracedJob& traced = at(input_.jobs, job);
  // Jobs with a demand go by the clock; replicas that a service gets start on their own.
  if (traced.demand.is_known()) completed = now_ - traced.request.submitted.value;
  if (traced.demand.is_service()) restarts = false;
  const double begun = now_ + (restarts ? running.request.checkpointing.restart.value : 0);
  double rate = 0;
  if (!sched::is_degraded(snapshot_, running))
    rate = traced.demand.is_known()
               ? 1
               : sched::work_rate(snapshot_.nodes, running.request, running.replicas);
  JobRun& run = at(runs_, state.running);
  run = run_of(begun, completed, rate);
  run.devices = sched::devices_of(running.request, running.replicas);
  run.devices_min = sched::devices_min(running.request);
  result_.failure_costs.restarts += restarts && !run.is_degraded() ? 1 : 0;
  running.started = {now_};
  running.checkpointed = {now_};
  running.completed = {completed};
  use_.remove(job);
  use_.add(job, running.request, running.replicas);
  if (traced.demand.is_known()) set_demand(job);
  plan_end(job);
}

void ReplayState::plan_end(int job) {
  Job& state = at(jobs_, job);
  const JobRun& run = at(runs_, state.running);
  const TracedJob& traced = at(input_.jobs, job);
  ++state.version;
  if (traced.demand.is_known()) {
    const Seconds end = traced.request.submitted + traced.run_time;
    planned_.push_back({std::max(now_, end.value), job, state.version});
    return;
  }
  if (run.rate() <= 0) return;
  const double left = std::max(0.0, traced.run_time.value - run.completed);
  planned_.push_back({run.since + left / run.rate(), job, state.version});
}

void ReplayState::settle() {
  for (const int job : use_.divide({now_})) {
    const Job& state = at(jobs_, job);
    if (state.running < 0 || at(input_.jobs, job).demand.is_known()) continue;
    JobRun& run = at(runs_, state.running);
    const double served = use_.served(job).least;
    if (served == run.served) continue;
    set_served(run, at(snapshot_.running, state.running).request.checkpointing, now_, served);
    plan_end(job);
  }
}

void ReplayState::lose_work(int job, double kept) {
  if (at(input_.jobs, job).demand.is_known()) return;
  Job& state = at(jobs_, job);
  const sched::RunningJob& running = at(snapshot_.running, state.running);
  const double lost = std::max(0.0, work_at(at(runs_, state.running), now_) - kept);
  at(result_.jobs, job).lost += {lost};
  result_.lost_device_time += {lost * sched::devices_of(running.request, running.replicas)};
}

Status ReplayState::set_health(const NodeEvent& event) {
  if (event.node < 0 || as_index(event.node) >= snapshot_.nodes.size())
    return Error{Code::kInvalidInput,
                 fmt::format("node event at {} s: there is no node {}; give 0 to {}",
                             event.at.value, event.node, snapshot_.nodes.size() - 1)};
  sched::ClusterNode& node = at(snapshot_.nodes, event.node);
  const bool changes_work =
      (node.health == sched::NodeHealth::kFailed) != (event.health == sched::NodeHealth::kFailed);
  if (changes_work && event.health == sched::NodeHealth::kFailed && !event.is_planned)
    add_failure(node);
  node.health = event.health;
  log_.add(now_, enum_name(kHealthEvents, event.health), node.name);
  if (changes_work) node_changed(event.node);
  return {};
}

void ReplayState::add_failure(sched::ClusterNode& node) {
  ++result_.failure_costs.failures;
  if (static_cast<int>(node.failures.size()) >= sched::kNodeFailuresMax)
    node.failures.erase(node.failures.begin());
  node.failures.push_back({now_});
}

void ReplayState::node_changed(int node) {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const sched::RunningJob& running = snapshot_.running[i];
    if (std::none_of(running.replicas.begin(), running.replicas.end(),
                     [&](const sched::ReplicaPlacement& replica) { return replica.node == node; }))
      continue;
    const bool was_degraded = runs_[i].is_degraded();
    const bool is_degraded = sched::is_degraded(snapshot_, running);
    if (was_degraded == is_degraded) continue;
    if (!is_degraded && at(input_.jobs, run_jobs_[i]).demand.is_service())
      set_ready(run_jobs_[i], {});
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
    if (runs_[i].served < 1 && !runs_[i].is_degraded()) {
      // So that work until now, at the full rate, is what was done.
      const double work = work_at(runs_[i], now_);
      const double since = std::max(0.0, now_ - running.started.value);
      running.completed = {std::max(0.0, work - since * runs_[i].full_rate)};
    }
    running.checkpointed = {
        std::max(running.started.value,
                 std::min(now_, checkpoint_time(runs_[i], running.request.checkpointing, now_)))};
  }
}

ReplayResult ReplayState::finish_result(Seconds measured_until) {
  const CurvePoint mean = curves_.mean(options_.measured_from, measured_until);
  result_.allocated_share = mean.allocated_share;
  result_.busy_share = mean.busy_share;
  result_.used_share = mean.used_share;
  result_.online_share = mean.online_share;
  result_.delayed_share = delayable_ > 0 ? delayed_ / delayable_ : 0;
  result_.fragmentation = mean.fragmentation;
  result_.waiting_jobs = mean.waiting_jobs;
  result_.curves = curves_.points();
  result_.failure_costs.undone = result_.lost_device_time;
  result_.logged_events = log_.lines();
  result_.log_hash = log_.hash();
  for (const JobOutcome& job : result_.jobs)
    if (job.ended == kNever) ++result_.unfinished;
  summarize_jobs(result_);
  return std::move(result_);
}

}  // namespace regatta::cluster_replay
