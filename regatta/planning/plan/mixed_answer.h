// plan/mixed_answer.h: what people want to know of a plan on servers of several types beside its
// times, as plan/gpu_answer.h has it for equal ones.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/gpu_answer.h"
#include "regatta/planning/plan/mixed_search.h"

namespace regatta::plan {

struct MixedAnswer {
  int devices = 0;
  FlopsPerSecond per_device;           // operations of the model, the mean of all devices
  FlopsPerSecond hardware_per_device;  // with what is computed again
  double mfu = 0;                      // of the sum of the devices' peaks in the precision
  double tokens_per_s = 0;
  Fit fit = Fit::kFits;
  Interval interval;  // 80 % of steps like it are in between, as the stack's replayed rows are
};

// Requires that `plan` is one of the problem.
MixedAnswer answer(const MixedProblem& problem, const MixedPlan& plan);

}  // namespace regatta::plan
