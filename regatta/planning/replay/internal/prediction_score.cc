#include "regatta/planning/replay/internal/prediction_score.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "regatta/base/core/stats.h"

namespace regatta::replay {
namespace {

double regret_of(const std::vector<const PredictionPair*>& rivals) {
  const auto by = [](double PredictionPair::*time) {
    return [time](const PredictionPair* a, const PredictionPair* b) { return a->*time < b->*time; };
  };
  const PredictionPair* chosen =
      *std::min_element(rivals.begin(), rivals.end(), by(&PredictionPair::predicted));
  const PredictionPair* best =
      *std::min_element(rivals.begin(), rivals.end(), by(&PredictionPair::measured));
  return chosen->measured / best->measured - 1;
}

}  // namespace

PredictionScore score(const std::vector<PredictionPair>& pairs) {
  PredictionScore score{.rows = static_cast<int>(pairs.size())};
  if (pairs.empty()) return score;
  std::vector<double> errors;
  std::vector<double> predicted;
  std::vector<double> measured;
  std::map<std::string, std::vector<const PredictionPair*>> models;
  for (const PredictionPair& pair : pairs) {
    errors.push_back(std::abs(pair.predicted / pair.measured - 1));
    predicted.push_back(pair.predicted);
    measured.push_back(pair.measured);
    models[pair.model].push_back(&pair);
  }
  for (const double error : errors)
    score.mape += error / static_cast<double>(errors.size());
  score.median = median(errors);
  score.worst = *std::max_element(errors.begin(), errors.end());
  score.spearman = spearman(predicted, measured);
  for (const auto& [model, rivals] : models)
    if (rivals.size() > 1) score.regret = std::max(score.regret, regret_of(rivals));
  return score;
}

}  // namespace regatta::replay
