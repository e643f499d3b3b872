#include "regatta/planning/replay/internal/score.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "regatta/base/core/stats.h"

namespace regatta::replay {
namespace {

double regret_of(const std::vector<const Pair*>& rivals) {
  const auto by = [](double Pair::*time) {
    return [time](const Pair* a, const Pair* b) { return a->*time < b->*time; };
  };
  const Pair* chosen = *std::min_element(rivals.begin(), rivals.end(), by(&Pair::predicted));
  const Pair* best = *std::min_element(rivals.begin(), rivals.end(), by(&Pair::measured));
  return chosen->measured / best->measured - 1;
}

}  // namespace

Score score(const std::vector<Pair>& pairs) {
  Score score{.rows = static_cast<int>(pairs.size())};
  if (pairs.empty()) return score;
  std::vector<double> errors;
  std::vector<double> predicted;
  std::vector<double> measured;
  std::map<std::string, std::vector<const Pair*>> models;
  for (const Pair& pair : pairs) {
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
