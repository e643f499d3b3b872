#include "regatta/platform/mixing/mixed_workload.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "regatta/base/core/ids.h"

namespace regatta::mixing {
namespace {

constexpr std::size_t kFewest = 12;
constexpr float kSpike = 0.8F;
constexpr double kHighMean = 0.5;
constexpr double kHighHour = 0.08;
constexpr double kHighOverLow = 4;
constexpr double kPeriodicCorrelation = 0.5;

double mean_of(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double autocorrelation(std::span<const float> values, std::size_t lag) {
  const double mean = mean_of(values);
  double variance = 0;
  double covariance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double deviation = values[i] - mean;
    variance += deviation * deviation;
    if (i + lag < values.size()) covariance += deviation * (values[i + lag] - mean);
  }
  return variance > 0 ? covariance / variance : 0;
}

bool is_periodic(std::span<const float> values) {
  const std::size_t lag_max = std::min<std::size_t>(60, values.size() / 3);
  for (std::size_t lag = 4; lag <= lag_max; ++lag) {
    const double correlation = autocorrelation(values, lag);
    if (correlation >= kPeriodicCorrelation && correlation > autocorrelation(values, lag / 2))
      return true;
  }
  return false;
}

bool is_peak_valley(std::span<const float> values, Seconds interval) {
  const auto hour = static_cast<std::size_t>(std::max(1.0, 3600 / interval.value));
  if (values.size() < 6 * hour) return false;
  double highest = 0;
  double lowest = 1;
  for (std::size_t start = 0; start + hour <= values.size(); start += hour) {
    const double mean = mean_of(values.subspan(start, hour));
    highest = std::max(highest, mean);
    lowest = std::min(lowest, mean);
  }
  return highest >= kHighHour && highest >= kHighOverLow * lowest;
}

}  // namespace

bool has_latency_target(WorkloadClass load_class) {
  return load_class == WorkloadClass::kOnline || load_class == WorkloadClass::kTidal;
}

DutyPattern find_duty_pattern(std::span<const float> demand, Seconds interval) {
  std::vector<float> values;
  std::copy_if(demand.begin(), demand.end(), std::back_inserter(values),
               [](float value) { return value >= 0; });
  if (values.size() < kFewest) return DutyPattern::kLowAverage;
  const double mean = mean_of(values);
  std::vector<float> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t high = sorted.size() - 1 - sorted.size() / 200;
  if (sorted[high] >= kSpike && mean < kHighMean) return DutyPattern::kShortSpike;
  if (is_peak_valley(values, interval)) return DutyPattern::kPeakValley;
  if (is_periodic(values)) return DutyPattern::kPeriodic;
  return mean >= kHighMean ? DutyPattern::kSteady : DutyPattern::kLowAverage;
}

WorkloadClass class_of_pattern(DutyPattern pattern) {
  switch (pattern) {
    case DutyPattern::kLowAverage:
      return WorkloadClass::kOnline;
    case DutyPattern::kPeakValley:
      return WorkloadClass::kTidal;
    case DutyPattern::kShortSpike:
    case DutyPattern::kPeriodic:
      return WorkloadClass::kIntermittent;
    case DutyPattern::kSteady:
      return WorkloadClass::kBatch;
  }
  return WorkloadClass::kOnline;
}

const char* name_of(DutyPattern pattern) {
  constexpr const char* kNames[] = {"low average", "peak-valley", "short spike", "periodic",
                                    "steady"};
  return at(kNames, static_cast<int>(pattern));
}

const char* name_of(WorkloadClass load_class) {
  constexpr const char* kNames[] = {"online", "batch", "intermittent", "tidal"};
  return at(kNames, static_cast<int>(load_class));
}

const char* name_of(MixMode mode) {
  constexpr const char* kNames[] = {"shared", "preemptive", "time-slice", "tidal"};
  return at(kNames, static_cast<int>(mode));
}

}  // namespace regatta::mixing
