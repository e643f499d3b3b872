#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "regatta/platform/sched/start_prediction.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kRemembered = 200;  // predictions of a bin
constexpr std::size_t kEnough = 20;       // starts to judge by
constexpr double kLeastWait = 30;         // seconds: shorter waits count as this
constexpr double kLeastSpread = 0.25;     // of the logarithm of a wait
constexpr double kMostWait = 365 * 86400.0;

double wait_of(Seconds time, Seconds predicted_at) {
  return std::clamp((time - predicted_at).value, kLeastWait, kMostWait);
}

// Half the logarithm of the interval.
double error_range_of_wait(const StartPrediction& prediction, Seconds predicted_at) {
  return std::max(kLeastSpread, 0.5 * std::log(wait_of(prediction.latest, predicted_at) /
                                               wait_of(prediction.earliest, predicted_at)));
}

// The first of the sorted errors at which the share of those beyond it is at most 1 - `quantile`,
// where the rank is one among one more than were seen. Those that are only known to be larger pass
// their share on to the larger ones.
template <typename Errors>
double product_limit_quantile(const Errors& sorted, double quantile) {
  double beyond = 1;
  double left = static_cast<double>(sorted.size()) + 1;
  double last = sorted.back().value;
  for (const auto& error : sorted) {
    if (error.is_start) {
      beyond *= 1 - 1 / left;
      last = error.value;
      if (beyond <= 1 - quantile + 1e-12) return error.value;
    }
    left -= 1;
  }
  return last;
}

}  // namespace

std::size_t StartCalibration::bin_of(double wait) {
  // A factor of 4 from 1 minute on.
  const double bin = std::log2(wait / 60) / 2 + 1;
  return static_cast<std::size_t>(std::clamp(bin, 0.0, kBins - 1.0));
}

void StartCalibration::add(const StartPrediction& predicted, Seconds predicted_at) {
  const double wait = wait_of(predicted.start, predicted_at);
  Records& records = bins_[bin_of(wait)];
  records.push_back(
      {predicted.job, wait, error_range_of_wait(predicted, predicted_at), predicted_at, {}});
  if (records.size() > kRemembered) records.pop_front();
}

void StartCalibration::add_start(std::string_view job, Seconds started) {
  for (Records& records : bins_)
    for (Record& record : records)
      if (record.job == job && !record.started) record.started = started;
}

std::vector<StartCalibration::Error> StartCalibration::errors_of(const Records& records,
                                                                 Seconds now) {
  std::vector<Error> errors;
  for (const Record& record : records)
    errors.push_back(
        {std::log(wait_of(record.started.value_or(now), record.at) / record.wait) / record.spread,
         record.started.has_value()});
  std::sort(errors.begin(), errors.end(),
            [](const Error& a, const Error& b) { return a.value < b.value; });
  return errors;
}

StartPrediction StartCalibration::calibrated(StartPrediction prediction,
                                             Seconds predicted_at) const {
  const double wait = wait_of(prediction.start, predicted_at);
  const std::vector<Error> errors = errors_of(bins_[bin_of(wait)], predicted_at);
  const auto starts = static_cast<std::size_t>(std::count_if(
      errors.begin(), errors.end(), [](const Error& error) { return error.is_start; }));
  if (starts < kEnough) return prediction;
  const double spread = error_range_of_wait(prediction, predicted_at);
  const auto moved = [&](double quantile) {
    return predicted_at +
           Seconds{wait * std::exp(spread * product_limit_quantile(errors, quantile))};
  };
  prediction.start = moved(0.5);
  prediction.earliest = moved(0.1);
  prediction.latest = moved(0.9);
  return prediction;
}

}  // namespace regatta::sched
