#include "regatta/app/report/run_result.h"

#include <optional>
#include <vector>

#include "regatta/base/core/stats.h"

namespace regatta::report {

std::optional<double> speedup(const RunResult& result) {
  if (!result.compare || result.main.measured.step_time.value <= 0) return std::nullopt;
  return result.compare->measured.step_time / result.main.measured.step_time;
}

std::optional<double> sweep_spearman(const RunResult& result) {
  std::vector<double> predicted;
  std::vector<double> measured;
  predicted.reserve(result.sweep.size());
  measured.reserve(result.sweep.size());
  for (const PlanRun& run : result.sweep) {
    predicted.push_back(run.plan.prediction.step_time.value);
    measured.push_back(run.measured.step_time.value);
  }
  return spearman(predicted, measured);
}

double deviation(const PlanRun& run) {
  const Seconds predicted = run.plan.prediction.step_time;
  if (run.measured.step_time.value <= 0 || predicted.value <= 0) return 0;
  return run.measured.step_time / predicted - 1;
}

}  // namespace regatta::report
