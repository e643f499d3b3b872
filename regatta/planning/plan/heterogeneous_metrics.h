// plan/heterogeneous_metrics.h: what people want to know of a plan on servers of several types
// beside its times, as plan/plan_metrics.h has it for equal ones.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/heterogeneous_search.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {

struct HeterogeneousPlanMetrics {
  int devices = 0;
  FlopsPerSecond per_device;           // operations of the model, the mean of all devices
  FlopsPerSecond hardware_per_device;  // with what is computed again
  double mfu = 0;                      // of the sum of the devices' peaks in the precision
  double tokens_per_s = 0;
  MemoryFit fit = MemoryFit::kFits;
  PredictionInterval
      interval;  // 80 % of steps like it are in between, as the stack's replayed rows are
};

// Requires that `plan` is one of the problem.
HeterogeneousPlanMetrics plan_metrics(const HeterogeneousProblem& problem,
                                      const HeterogeneousPlan& plan);

}  // namespace regatta::plan
