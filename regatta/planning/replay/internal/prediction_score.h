// replay/internal/prediction_score.h: the errors of predictions against measurements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::replay {

struct PredictionPair {
  double predicted = 0;  // seconds or bytes
  double measured = 0;   // above 0
  std::string model;     // rows of one model on one cluster compete: the regret is over each
};

struct PredictionScore {
  int rows = 0;
  double mape = 0;    // mean of |predicted / measured - 1|
  double median = 0;  // of the same
  double worst = 0;
  std::optional<double> spearman;  // nothing below 3 rows
  // Over the models with at least two rows, the worst of: measured time of the row that is
  // predicted fastest, over the least measured time, minus 1.
  double regret = 0;
};
PredictionScore score(const std::vector<PredictionPair>& pairs);

}  // namespace regatta::replay
