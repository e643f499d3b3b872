#include "regatta/platform/sched/start_prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

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

}  // namespace regatta::sched
