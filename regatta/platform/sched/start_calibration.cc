#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "regatta/platform/sched/start_prediction.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kRemembered = 300;  // errors of a bin
constexpr std::size_t kEnough = 30;       // errors to judge by
constexpr double kLeastWait = 30;         // seconds: shorter waits count as this
constexpr double kLeastSpread = 0.25;     // of the logarithm of a wait
constexpr double kMostWait = 365 * 86400.0;

double wait_of(Seconds time, Seconds predicted_at) {
  return std::clamp((time - predicted_at).value, kLeastWait, kMostWait);
}

// Half the logarithm of the interval.
double log_spread(const StartPrediction& prediction, Seconds predicted_at) {
  return std::max(kLeastSpread, 0.5 * std::log(wait_of(prediction.latest, predicted_at) /
                                               wait_of(prediction.earliest, predicted_at)));
}

// The quantile of a conformal interval: the rank among one more value than were seen.
double conformal_quantile(const std::vector<double>& sorted, double quantile) {
  const double rank = quantile * static_cast<double>(sorted.size() + 1);
  const double place = quantile > 0.5 ? std::ceil(rank) : std::floor(rank);
  return sorted[static_cast<std::size_t>(
      std::clamp(place - 1, 0.0, static_cast<double>(sorted.size() - 1)))];
}

}  // namespace

std::size_t StartCalibration::bin_of(double wait) {
  // A factor of 4 from 1 minute on.
  const double bin = std::log2(wait / 60) / 2 + 1;
  return static_cast<std::size_t>(std::clamp(bin, 0.0, kBins - 1.0));
}

void StartCalibration::add(const StartPrediction& predicted, Seconds predicted_at,
                           Seconds started) {
  const double wait = wait_of(predicted.start, predicted_at);
  const double error =
      std::log(wait_of(started, predicted_at) / wait) / log_spread(predicted, predicted_at);
  for (Errors* errors : {&bins_[bin_of(wait)], &all_}) {
    errors->push_back(error);
    if (errors->size() > kRemembered) errors->pop_front();
  }
}

StartPrediction StartCalibration::calibrated(StartPrediction prediction,
                                             Seconds predicted_at) const {
  const double wait = wait_of(prediction.start, predicted_at);
  const Errors* errors = &bins_[bin_of(wait)];
  if (errors->size() < kEnough) errors = &all_;
  if (errors->size() < kEnough) return prediction;
  const double spread = log_spread(prediction, predicted_at);
  std::vector<double> sorted(errors->begin(), errors->end());
  std::sort(sorted.begin(), sorted.end());
  const auto moved = [&](double quantile) {
    return predicted_at + Seconds{wait * std::exp(spread * conformal_quantile(sorted, quantile))};
  };
  prediction.start = moved(0.5);
  prediction.earliest = moved(0.1);
  prediction.latest = moved(0.9);
  return prediction;
}

}  // namespace regatta::sched
