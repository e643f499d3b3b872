#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "regatta/base/core/stats.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kRemembered = 200;  // predictions of a bin
constexpr long kEnough = 20;              // starts to judge by
constexpr double kUnknownError = 1.4;     // of the logarithm of a wait, until then: a factor of 4
constexpr double kLeastError = 0.05;      // so that an interval has a width
constexpr double kMissedShare = 0.2;      // of the starts, outside their interval
constexpr double kMoveGain = 0.9;         // of the error, from which on starts are moved
constexpr double kWidthStep = 0.05;
constexpr double kLogWidthMax = 3;
constexpr double kLeastWait = 30;      // seconds: shorter waits count as this
constexpr double kLeastSpread = 0.25;  // of the logarithm of a wait
constexpr double kMostWait = 365 * 86400.0;

double wait_of(Seconds time, Seconds predicted_at) {
  return std::clamp((time - predicted_at).value, kLeastWait, kMostWait);
}

// Half the logarithm of the interval.
double wait_log_range(const StartPrediction& prediction, Seconds predicted_at) {
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

void StartCalibration::add(const StartPrediction& predicted, const StartPrediction& calibrated,
                           Seconds predicted_at) {
  const double wait = wait_of(predicted.start, predicted_at);
  Records& records = bins_[bin_of(wait)];
  records.push_back({wait,
                     wait_log_range(predicted, predicted_at),
                     calibrated,
                     predicted_at,
                     {},
                     predicted.start,
                     moved(predicted, predicted_at).start});
  if (records.size() > kRemembered) records.pop_front();
}

void StartCalibration::add_start(std::string_view job, Seconds started) {
  for (Records& records : bins_)
    for (Record& record : records) {
      if (record.calibrated.job != job || record.started) continue;
      record.started = started;
      const bool is_missed =
          started < record.calibrated.earliest || started > record.calibrated.latest;
      const double waited = wait_of(started, record.at);
      const auto error = [&](Seconds start) { return std::abs((start - started).value) / waited; };
      start_errors_.push_back({error(record.raw_start), error(record.moved_start)});
      if (start_errors_.size() > kRemembered) start_errors_.pop_front();
      log_width_ = std::clamp(log_width_ + kWidthStep * ((is_missed ? 1 : 0) - kMissedShare),
                              -kLogWidthMax, kLogWidthMax);
    }
}

void StartCalibration::add_errors(const Records& records, Seconds now, std::vector<Error>& errors) {
  for (const Record& record : records)
    errors.push_back(
        {std::log(wait_of(record.started.value_or(now), record.at) / record.wait) / record.spread,
         record.started.has_value()});
}

bool StartCalibration::moves_starts() const {
  if (start_errors_.size() < static_cast<std::size_t>(kEnough)) return false;
  std::vector<double> of_raw;
  std::vector<double> of_moved;
  for (const StartErrors& errors : start_errors_) {
    of_raw.push_back(errors.raw);
    of_moved.push_back(errors.moved);
  }
  return median(std::move(of_moved)) < kMoveGain * median(std::move(of_raw));
}

StartPrediction StartCalibration::calibrated(StartPrediction prediction,
                                             Seconds predicted_at) const {
  StartPrediction made = moved(prediction, predicted_at);
  if (!moves_starts()) made.start = std::clamp(prediction.start, made.earliest, made.latest);
  return made;
}

StartPrediction StartCalibration::moved(StartPrediction prediction, Seconds predicted_at) const {
  const double wait = wait_of(prediction.start, predicted_at);
  const double spread = wait_log_range(prediction, predicted_at);
  const double width = std::exp(log_width_);
  std::vector<Error> errors;
  const auto has_enough = [&] {
    return std::count_if(errors.begin(), errors.end(),
                         [](const Error& error) { return error.is_start; }) >= kEnough;
  };
  add_errors(bins_[bin_of(wait)], predicted_at, errors);
  if (!has_enough()) {
    errors.clear();
    for (const Records& records : bins_)
      add_errors(records, predicted_at, errors);
  }
  double middle = 0;
  double below = kUnknownError / spread;
  double above = below;
  if (has_enough()) {
    std::sort(errors.begin(), errors.end(),
              [](const Error& a, const Error& b) { return a.value < b.value; });
    middle = product_limit_quantile(errors, 0.5);
    below = middle - product_limit_quantile(errors, 0.1);
    above = product_limit_quantile(errors, 0.9) - middle;
  }
  const auto after = [&](double error) {
    return predicted_at + Seconds{wait * std::exp(spread * error)};
  };
  prediction.start = after(middle);
  prediction.earliest = after(middle - width * std::max(kLeastError, below));
  prediction.latest = after(middle + width * std::max(kLeastError, above));
  return prediction;
}

}  // namespace regatta::sched
