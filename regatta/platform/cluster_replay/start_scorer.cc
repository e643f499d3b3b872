#include "regatta/platform/cluster_replay/start_scorer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "regatta/base/core/stats.h"

namespace regatta::cluster_replay {
namespace {

constexpr std::size_t kRecentJobs = 400;

bool is_within_bounds(const sched::StartPrediction& prediction, Seconds start) {
  return prediction.earliest <= start && start <= prediction.latest;
}

}  // namespace

StartScorer::StartScorer(sched::SchedulingPolicy policy, sched::StartForecastOptions forecast,
                         int every)
    : policy_(std::move(policy)), forecast_(std::move(forecast)), every_(std::max(1, every)) {}

void StartScorer::watch(ReplayOptions& options) {
  options.after_decision = [this](const sched::ClusterSnapshot& snapshot,
                                  const sched::JobQueue& queue,
                                  const sched::SchedulingDecision& decision) {
    see_decision(snapshot, queue, decision);
  };
  options.on_end = [this](const sched::JobRequest& job, Seconds run_time) {
    estimator_.add(job, run_time);
  };
  // Estimates of users are not replaced.
  if (options.estimates_run_times)
    forecast_.run_time = [this](const sched::JobRequest& job) { return estimator_.estimate(job); };
  options.on_first_start = [this](const sched::JobRequest& job, Seconds now) {
    see_start(job, now);
  };
}

void StartScorer::see_decision(const sched::ClusterSnapshot& snapshot, const sched::JobQueue& queue,
                               const sched::SchedulingDecision& decision) {
  std::set<std::string_view> started;
  for (const sched::SchedulingAction& action : decision.actions)
    if (action.kind == sched::ActionKind::kStart) started.insert(action.job);
  std::vector<const sched::JobRequest*> arrived;
  for (const sched::PendingJob& job : queue.jobs)
    if (job.evictions == 0 && job.request.submitted > last_decision_)
      arrived.push_back(&job.request);
  std::sort(arrived.begin(), arrived.end(), [](const auto* a, const auto* b) {
    return std::tie(a->submitted, a->name) < std::tie(b->submitted, b->name);
  });
  last_decision_ = snapshot.now;
  std::vector<std::string> wanted;
  for (const sched::JobRequest* job : arrived) {
    recent_.push_back(*job);
    if (recent_.size() > kRecentJobs) recent_.pop_front();
    if (started.count(job->name) > 0) {
      ++at_once_;
      continue;
    }
    if (waiting_++ % every_ == 0) wanted.push_back(job->name);
  }
  if (wanted.empty()) return;
  forecast_.recent.assign(recent_.begin(), recent_.end());
  ++forecast_.seed;
  sched::ClusterSnapshot after = snapshot;
  sched::JobQueue left = queue;
  sched::apply_decision(decision, after, left);
  const auto predictions = sched::predict_starts(after, left, policy_, wanted, forecast_);
  REGATTA_CHECK(predictions.has_value());
  for (const sched::StartPrediction& raw : *predictions) {
    tracked_[raw.job] = {raw, calibration_.calibrated(raw, snapshot.now), snapshot.now};
    calibration_.add(raw, tracked_[raw.job].made, snapshot.now);
  }
}

void StartScorer::see_start(const sched::JobRequest& job, Seconds now) {
  const auto found = tracked_.find(job.name);
  if (found == tracked_.end()) return;
  const Tracked& tracked = found->second;
  if (now > tracked.at) {
    const double waited = (now - tracked.at).value;
    const auto error = [&](const sched::StartPrediction& prediction) {
      return std::abs((prediction.start - now).value) / waited;
    };
    scores_.push_back({is_within_bounds(tracked.made, now), is_within_bounds(tracked.raw, now),
                       error(tracked.made), error(tracked.raw),
                       (tracked.made.latest - tracked.at).value /
                           std::max(1.0, (tracked.made.earliest - tracked.at).value)});
    calibration_.add_start(job.name, now);
  }
  tracked_.erase(found);
}

StartScores StartScorer::scores() const {
  StartScores result;
  result.at_once = at_once_;
  result.waiting = waiting_;
  result.scored = static_cast<int>(scores_.size());
  if (scores_.empty()) return result;
  std::vector<double> errors;
  std::vector<double> raw_errors;
  std::vector<double> ratios;
  for (const Score& score : scores_) {
    result.within_80 += score.is_within ? 1 : 0;
    result.raw_within_80 += score.is_raw_within ? 1 : 0;
    errors.push_back(score.error);
    raw_errors.push_back(score.raw_error);
    ratios.push_back(score.ratio);
  }
  result.within_80 /= result.scored;
  result.raw_within_80 /= result.scored;
  result.median_error = median(std::move(errors));
  result.raw_median_error = median(std::move(raw_errors));
  result.median_ratio = median(std::move(ratios));
  return result;
}

}  // namespace regatta::cluster_replay
