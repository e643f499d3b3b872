#include "regatta/platform/reliability/internal/forecast_score.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace regatta::reliability {
namespace {

// Failures of forecasts[begin, end), where ties with neighbors outside share theirs.
class RankedFailures {
 public:
  explicit RankedFailures(const std::vector<Forecast>& sorted) : before_(sorted.size() + 1) {
    for (std::size_t i = 0; i < sorted.size();) {
      std::size_t end = i;
      double failures = 0;
      for (; end < sorted.size() && sorted[end].probability == sorted[i].probability; ++end)
        failures += sorted[end].has_failed ? 1 : 0;
      const double each = failures / static_cast<double>(end - i);
      for (; i < end; ++i)
        before_[i + 1] = before_[i] + each;
    }
  }

  double between(std::size_t begin, std::size_t end) const { return before_[end] - before_[begin]; }
  double all() const { return before_.back(); }

 private:
  std::vector<double> before_;
};

TopShare top_share(const RankedFailures& ranked, std::size_t count, double share) {
  const long rounded = std::lround(share * static_cast<double>(count));
  const std::size_t taken = rounded > 1 ? static_cast<std::size_t>(rounded) : 1;
  const double failures = ranked.between(count - taken, count);
  TopShare top;
  top.precision = failures / static_cast<double>(taken);
  if (ranked.all() <= 0) return top;
  top.recall = failures / ranked.all();
  top.lift = top.precision / (ranked.all() / static_cast<double>(count));
  return top;
}

// Share of pairs of a failure and another in which the failure has the greater probability; ties
// count half.
double pair_share(const std::vector<Forecast>& sorted, double failures) {
  const double others = static_cast<double>(sorted.size()) - failures;
  if (failures <= 0 || others <= 0) return 0;
  double sum = 0;
  double below = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    double failed = 0;
    double not_failed = 0;
    const double probability = sorted[i].probability;
    for (; i < sorted.size() && sorted[i].probability == probability; ++i)
      (sorted[i].has_failed ? failed : not_failed) += 1;
    sum += failed * (below + not_failed / 2);
    below += not_failed;
  }
  return sum / failures / others;
}

}  // namespace

ForecastScore score_forecasts(std::vector<Forecast> forecasts) {
  ForecastScore score;
  if (forecasts.empty()) return score;
  std::stable_sort(forecasts.begin(), forecasts.end(), [](const Forecast& a, const Forecast& b) {
    return a.probability < b.probability;
  });
  const std::size_t count = forecasts.size();
  const auto total = static_cast<double>(count);
  const RankedFailures ranked(forecasts);
  for (const Forecast& forecast : forecasts) {
    const double error = forecast.probability - (forecast.has_failed ? 1 : 0);
    score.brier += error * error / total;
    score.failures += forecast.has_failed ? 1 : 0;
  }
  score.forecasts = static_cast<int>(count);
  score.base_rate = score.failures / total;
  const double base_brier = score.base_rate * (1 - score.base_rate);
  if (base_brier > 0) score.brier_skill = 1 - score.brier / base_brier;
  score.auc = pair_share(forecasts, score.failures);
  score.top_percent = top_share(ranked, count, 0.01);
  score.top_5_percent = top_share(ranked, count, 0.05);
  for (std::size_t bin = 0; bin < score.deciles.size(); ++bin) {
    const std::size_t begin = bin * count / score.deciles.size();
    const std::size_t end = (bin + 1) * count / score.deciles.size();
    if (begin == end) continue;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += forecasts[i].probability;
    score.deciles[bin] = {sum / static_cast<double>(end - begin),
                          ranked.between(begin, end) / static_cast<double>(end - begin)};
  }
  return score;
}

}  // namespace regatta::reliability
