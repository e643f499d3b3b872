#include "regatta/platform/sched/start_prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/queue_forecast.h"

namespace regatta::sched {
namespace {

constexpr double kShare = 0.8;      // of the starts, in an interval
constexpr double kAgeingMax = 1e9;  // priorities, so that their sum with a priority is an int

Result<std::vector<int>> wanted_jobs(const JobQueue& queue, const std::vector<std::string>& names) {
  std::vector<int> wanted;
  if (names.empty()) {
    for (int i = 0; i < static_cast<int>(queue.jobs.size()); ++i)
      wanted.push_back(i);
    return wanted;
  }
  std::unordered_map<std::string_view, int> index;
  for (int i = 0; i < static_cast<int>(queue.jobs.size()); ++i)
    index.emplace(at(queue.jobs, i).request.name, i);
  for (const std::string& name : names) {
    const auto found = index.find(name);
    if (found == index.end())
      return Error{Code::kNotFound, fmt::format("job {}: it is not pending", name)};
    wanted.push_back(found->second);
  }
  return wanted;
}

ForecastJob forecast_job(ForecastCluster& cluster, const SchedulingPolicy& policy,
                         const JobRequest& job, Seconds completed, Seconds now) {
  const Seconds waited = now - job.submitted;
  const int ageing = policy.ageing.value > 0 && waited.value > 0
                         ? static_cast<int>(std::min(waited / policy.ageing, kAgeingMax))
                         : 0;
  return {.shape = cluster.shape_of(job),
          .priority = job.priority + ageing,
          .order = forecast_order(policy.order, job, completed.value),
          .run_time = job.run_time,
          .elapsed = completed.value,
          .devices = devices_min(job),
          .gap = 0};
}

// Between the two values around the place of the quantile.
double quantile_of(const std::vector<double>& sorted, double quantile) {
  const double place = std::clamp(quantile * static_cast<double>(sorted.size() + 1) - 1, 0.0,
                                  static_cast<double>(sorted.size() - 1));
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(low);
  if (part == 0 || sorted[low] == sorted[high]) return sorted[low];
  return sorted[low] + part * (sorted[high] - sorted[low]);
}

}  // namespace

Result<std::vector<StartPrediction>> predict_starts(const ClusterSnapshot& snapshot,
                                                    const JobQueue& queue,
                                                    const SchedulingPolicy& policy,
                                                    const std::vector<std::string>& jobs,
                                                    const StartForecastOptions& options) {
  ForecastCluster cluster(snapshot);
  ForecastInput input;
  input.now = snapshot.now.value;
  input.cluster = &cluster;
  input.policy = policy;
  input.decision_interval = options.decision_interval.value;
  REGATTA_TRY(wanted, wanted_jobs(queue, jobs));
  input.wanted = wanted;
  for (const RunningJob& job : snapshot.running) {
    const Seconds done{std::max(0.0, (job.completed + snapshot.now - job.started).value)};
    input.running.push_back({cluster.places_of(job),
                             forecast_job(cluster, policy, job.request, done, snapshot.now),
                             job.started.value});
    input.running.back().job.priority = job.request.priority;
  }
  for (const PendingJob& job : queue.jobs)
    input.pending.push_back(
        forecast_job(cluster, policy, job.request, job.completed, snapshot.now));
  // In the order of submission, without a job that passes another, later ones change nothing.
  const bool has_passing =
      policy.order != JobOrder::kSubmitted || policy.backfill != BackfillRule::kNone;
  for (std::size_t i = 1; i < options.recent.size() && has_passing; ++i) {
    const JobRequest& job = options.recent[i];
    input.arrivals.push_back(forecast_job(cluster, policy, job, {0}, job.submitted));
    input.arrivals.back().gap = (job.submitted - options.recent[i - 1].submitted).value;
  }
  packing::RandomSequence random(options.seed);
  std::vector<std::vector<double>> starts(input.wanted.size());
  for (int sample = 0; sample < std::max(1, options.samples); ++sample) {
    const std::vector<double> drawn = sample_starts(input, random);
    for (std::size_t i = 0; i < drawn.size(); ++i)
      starts[i].push_back(drawn[i]);
  }
  std::vector<StartPrediction> predictions;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::sort(starts[i].begin(), starts[i].end());
    predictions.push_back({at(queue.jobs, input.wanted[i]).request.name,
                           {quantile_of(starts[i], 0.5)},
                           {quantile_of(starts[i], 0.5 - kShare / 2)},
                           {quantile_of(starts[i], 0.5 + kShare / 2)}});
  }
  return predictions;
}

}  // namespace regatta::sched
