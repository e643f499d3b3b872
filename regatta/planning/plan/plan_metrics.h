// plan/plan_metrics.h: what people want to know of a GPU plan beside its times: how well it uses
// the devices, how sure the figures are, what would make it faster, what stands in the way.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::plan {

struct PredictionInterval {
  Seconds low;
  Seconds high;
};

// The step's part of one change of the cluster: -0.05 is five per cent faster.
struct Sensitivity {
  std::string what;  // "nic_rate"
  double change = 0.1;
  double step_change = 0;
};

struct PlanMetrics {
  FlopsPerSecond per_device;           // operations of the model
  FlopsPerSecond hardware_per_device;  // with what is computed again
  double mfu = 0;                      // of the peak of the precision
  double tokens_per_s = 0;
  MemoryFit fit = MemoryFit::kFits;
  PredictionInterval interval;  // 80 % of steps like it are in between, as replayed rows are
  std::vector<Sensitivity> sensitivities;
  std::string binding;  // "matrix products take 61 % of the step; ..."
};

// Operations of the model on one device, and their share of its peak in the precision.
FlopsPerSecond rate_per_device(const PlanningProblem& problem, const EstimatedPlan& plan);
double mfu(const PlanningProblem& problem, const EstimatedPlan& plan);

// "needs 120 GiB of the 80 GiB of a device: it does not fit; ...", with what would help; "" of a
// plan that fits.
std::string memory_shortfall(const PlanningProblem& problem, const EstimatedPlan& plan);

// Requires that `plan` is one of the problem.
PlanMetrics plan_metrics(const PlanningProblem& problem, const EstimatedPlan& plan);

}  // namespace regatta::plan
