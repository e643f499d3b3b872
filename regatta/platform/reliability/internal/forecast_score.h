// reliability/internal/forecast_score.h: how good forecasts of failures were.
#pragma once

#include <array>
#include <vector>

namespace regatta::reliability {

struct Forecast {
  double probability = 0;
  bool has_failed = false;
};

// Forecasts of equal probability share their failures in every part of a ranking.
struct TopShare {
  double precision = 0;  // failures among those of the greatest probability
  double recall = 0;     // of all failures
  double lift = 0;       // precision over the base rate
};

struct CalibrationBin {
  double forecast = 0;  // mean probability
  double observed = 0;  // share that failed
};

struct ForecastScore {
  int forecasts = 0;
  int failures = 0;
  double base_rate = 0;
  double auc = 0;        // area under the receiver operating characteristic
  TopShare top_percent;  // the greatest 1 %
  TopShare top_5_percent;
  double brier = 0;        // mean of (probability - outcome)^2
  double brier_skill = 0;  // 1 - brier over that of the base rate of these very forecasts
  std::array<CalibrationBin, 10> deciles;  // from the least probability
};

// All 0 of nothing. Sources: Brier, Monthly Weather Review 78(1), 1950; Fawcett, Pattern
// Recognition Letters 27(8), 2006.
ForecastScore score_forecasts(std::vector<Forecast> forecasts);

}  // namespace regatta::reliability
