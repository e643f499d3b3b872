#include "regatta/platform/cluster_replay/cluster_replay.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <queue>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/cluster_replay/internal/replay_state.h"
#include "regatta/platform/mixing/mix_decision.h"

namespace regatta::cluster_replay {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();
constexpr long long kProgressDecisions = 1000;  // between two calls

struct EarlierEnd {
  bool operator()(const PlannedEnd& a, const PlannedEnd& b) const {
    return a.at != b.at ? a.at > b.at : a.job > b.job;
  }
};

Status check_order(const ReplayInput& input) {
  for (std::size_t i = 0; i < input.jobs.size(); ++i) {
    const TracedJob& job = input.jobs[i];
    if (!(job.run_time.value > 0))
      return Error{Code::kInvalidInput,
                   fmt::format("job {}: its run time is not above 0", job.request.name)};
    if (i > 0 && job.request.submitted < input.jobs[i - 1].request.submitted)
      return Error{Code::kInvalidInput,
                   fmt::format("job {}: it is submitted before the job that precedes it; sort the "
                               "jobs by their time of submission",
                               job.request.name)};
  }
  for (std::size_t i = 1; i < input.node_events.size(); ++i)
    if (input.node_events[i].at < input.node_events[i - 1].at)
      return Error{
          Code::kInvalidInput,
          fmt::format("node event at {} s: it follows a later one; sort them by their time",
                      input.node_events[i].at.value)};
  return {};
}

class Replay {
 public:
  Replay(const ReplayInput& input, const DecisionFunction& decide, const ReplayOptions& options)
      : input_(input), decide_(decide), options_(options), state_(input, options) {
    if (state_.demand_interval() > 0) next_interval_ = state_.snapshot().now.value;
  }

  Result<ReplayResult> run() {
    for (;;) {
      const double now = next_time();
      if (now == kNoTime) break;
      if (options_.stops_at.value > 0 && now >= options_.stops_at.value) {
        state_.advance(options_.stops_at.value);
        break;
      }
      state_.advance(now);
      REGATTA_TRY(has_changed, process_events(now));
      must_decide_ |= has_changed;
      if (now >= repeat_time()) must_decide_ = true;
      if (now >= next_interval_) {
        state_.begin_interval();
        next_interval_ += state_.demand_interval();
        // Services follow their demand, with nothing else happening.
        must_decide_ |= state_.has_services();
      }
      if (must_decide_ && now >= earliest_decision()) REGATTA_TRY_DO(make_decision(now));
      state_.settle();
      plan_ends();
    }
    Seconds until = options_.measured_until;
    if (until.value <= 0) until = end_of_load();
    ReplayResult result = state_.finish_result(until);
    result.decision_times = times_;
    return result;
  }

 private:
  // The last submission, or the end of a job with a demand where that is later.
  Seconds end_of_load() const {
    Seconds end;
    for (const TracedJob& job : input_.jobs) {
      const Seconds length = job.demand.is_known() ? job.run_time : Seconds{0};
      end = std::max(end, job.request.submitted + length);
    }
    return end;
  }

  double earliest_decision() const { return last_decision_ + options_.decision_interval.value; }

  double repeat_time() {
    if (options_.repeat_interval.value <= 0 || times_.decisions == 0) return kNoTime;
    if (state_.queue().jobs.empty()) return kNoTime;
    return last_decision_ + options_.repeat_interval.value;
  }

  // The next event; of decisions only where something is still to happen, or changed since the
  // last.
  double next_time() {
    double next = kNoTime;
    // Nodes may fail for long after the last job.
    const bool is_over = next_job_ == input_.jobs.size() && state_.queue().jobs.empty() &&
                         state_.snapshot().running.empty();
    if (is_over && !must_decide_ && !input_.jobs.empty()) return next;
    if (next_job_ < input_.jobs.size()) next = input_.jobs[next_job_].request.submitted.value;
    if (next_node_event_ < input_.node_events.size())
      next = std::min(next, input_.node_events[next_node_event_].at.value);
    if (!ends_.empty()) next = std::min(next, ends_.top().at);
    if (next != kNoTime) next = std::min({next, repeat_time(), next_interval_});
    if (must_decide_)
      next = std::min(next, std::max(state_.snapshot().now.value, earliest_decision()));
    return next;
  }

  Result<bool> process_events(double now) {
    bool has_changed = false;
    while (next_node_event_ < input_.node_events.size() &&
           input_.node_events[next_node_event_].at.value <= now) {
      REGATTA_TRY_DO(state_.set_health(input_.node_events[next_node_event_++]));
      has_changed = true;
    }
    plan_ends();
    while (!ends_.empty() && ends_.top().at <= now) {
      const PlannedEnd end = ends_.top();
      ends_.pop();
      if (!state_.finish(end)) continue;
      ++ended_;
      has_changed = true;
    }
    while (next_job_ < input_.jobs.size() &&
           input_.jobs[next_job_].request.submitted.value <= now) {
      REGATTA_TRY_DO(state_.submit(static_cast<int>(next_job_++)));
      has_changed = true;
    }
    return has_changed;
  }

  Status make_decision(double now) {
    must_decide_ = false;
    last_decision_ = now;
    // Even with nothing in the queue, jobs may grow, move or heal.
    state_.refresh_checkpoints();
    if (options_.before_decision) options_.before_decision(state_.snapshot(), state_.queue());
    const double begun = options_.clock ? options_.clock() : 0;
    REGATTA_TRY(decision, decide_(state_.snapshot(), state_.queue()));
    const double spent = options_.clock ? options_.clock() - begun : 0;
    ++times_.decisions;
    times_.total += {spent};
    times_.longest = std::max(times_.longest, Seconds{spent});
    if (options_.after_decision)
      options_.after_decision(state_.snapshot(), state_.queue(), decision);
    REGATTA_TRY_DO(state_.apply(decision));
    plan_ends();
    if (options_.progress && times_.decisions % kProgressDecisions == 0)
      options_.progress({{now},
                         static_cast<int>(next_job_),
                         ended_,
                         static_cast<int>(state_.queue().jobs.size())});
    return {};
  }

  void plan_ends() {
    for (const PlannedEnd& end : state_.take_planned_ends())
      ends_.push(end);
  }

  const ReplayInput& input_;
  const DecisionFunction& decide_;
  const ReplayOptions& options_;
  ReplayState state_;
  std::priority_queue<PlannedEnd, std::vector<PlannedEnd>, EarlierEnd> ends_;
  std::size_t next_job_ = 0;
  std::size_t next_node_event_ = 0;
  int ended_ = 0;
  bool must_decide_ = false;
  double next_interval_ = kNoTime;  // of demands
  double last_decision_ = -kNoTime;
  DecisionTimes times_;
};

bool has_services(const ReplayInput& input) {
  return std::any_of(input.jobs.begin(), input.jobs.end(),
                     [](const TracedJob& job) { return job.demand.is_service(); });
}

// Services that have all their replicas, whatever their demand.
ReplayInput with_largest_services(ReplayInput input) {
  for (TracedJob& job : input.jobs) {
    if (!job.demand.is_service()) continue;
    job.request.demand.reset();
    for (sched::Role& role : job.request.roles)
      role.replicas_min = role.replicas_max;
  }
  return input;
}

}  // namespace

Result<ReplayResult> replay_cluster(const ReplayInput& input, const DecisionFunction& decide,
                                    const ReplayOptions& options) {
  REGATTA_TRY_DO(check_order(input));
  return Replay(input, decide, options).run();
}

Result<ReplayResult> replay_cluster(const ReplayInput& input, const sched::SchedulingPolicy& policy,
                                    const ReplayOptions& options) {
  mixing::MixMemo memo;
  const auto decide = [&](const sched::ClusterSnapshot& snapshot, const sched::JobQueue& queue) {
    return sched::decide(snapshot, queue, policy, &memo);
  };
  if (policy.sizes_services || !has_services(input)) return replay_cluster(input, decide, options);
  return replay_cluster(with_largest_services(input), decide, options);
}

}  // namespace regatta::cluster_replay
