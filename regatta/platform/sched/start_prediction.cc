#include "regatta/platform/sched/start_prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/queue_forecast.h"

namespace regatta::sched {
namespace {

constexpr double kShare = 0.8;  // of the starts, in an interval

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
  REGATTA_TRY(wanted, wanted_jobs(queue, jobs));
  REGATTA_TRY(input, make_forecast_input(snapshot, queue, policy, options));
  input.wanted = std::move(wanted);
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

Result<std::vector<std::string>> endless_jobs_before(const ClusterSnapshot& snapshot,
                                                     const JobQueue& queue,
                                                     const SchedulingPolicy& policy,
                                                     const std::string& job,
                                                     const StartForecastOptions& options) {
  constexpr std::size_t kTried = 8;
  REGATTA_TRY(starts, predict_starts(snapshot, queue, policy, {}, options));
  std::vector<std::pair<double, std::string>> endless;  // by their starts
  for (int i = 0; i < std::ssize(queue.jobs); ++i) {
    const JobRequest& other = at(queue.jobs, i).request;
    const RunTime time = options.run_time ? options.run_time(other) : other.run_time;
    const double start = at(starts, i).start.value;
    if (other.name != job && time.median.value <= 0 && std::isfinite(start))
      endless.emplace_back(start, other.name);
  }
  std::sort(endless.begin(), endless.end());
  if (endless.size() > kTried) endless.resize(kTried);
  std::vector<std::string> names;
  for (const auto& [start, name] : endless)
    names.push_back(name);
  // Decisions go by the requests as before: the ends alone change.
  const auto has_start_without = [&](const std::vector<std::string>& ended) -> Result<bool> {
    StartForecastOptions known = options;
    known.run_time = [&](const JobRequest& request) {
      if (std::find(ended.begin(), ended.end(), request.name) != ended.end())
        return RunTime{{1}, 0};
      return options.run_time ? options.run_time(request) : request.run_time;
    };
    REGATTA_TRY(start, predict_starts(snapshot, queue, policy, {job}, known));
    return std::isfinite(start.front().start.value);
  };
  if (names.empty()) return names;
  REGATTA_TRY(suffice, has_start_without(names));
  if (!suffice) return std::vector<std::string>{};
  for (std::size_t i = names.size(); i-- > 0;) {
    std::vector<std::string> fewer = names;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    REGATTA_TRY(is_needless, has_start_without(fewer));
    if (is_needless) names = std::move(fewer);
  }
  return names;
}

}  // namespace regatta::sched
