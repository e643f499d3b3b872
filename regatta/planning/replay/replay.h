// replay/replay.h: predicts a set of published runs and fits a software stack to them.
#pragma once

#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/planning/replay/internal/prediction_score.h"
#include "regatta/planning/replay/internal/published_run.h"

namespace regatta::replay {

// Every run under the stack that it names, or under `stack` where one is given; where its source
// does not say the micro-batch, with the fastest of 1, 2, 4 and 8 that the job allows. Fails with
// the error of the first run that cannot be predicted, naming it.
Result<std::vector<PredictionPair>> predict_runs(const std::vector<PublishedRun>& runs,
                                                 const cost::SoftwareStack* stack = nullptr);

// The prediction of a planner for a run before it is tried.
struct RunForecast {
  Seconds step;
  double memory_share = 0;  // of the stage that fills its devices most
};
Result<std::vector<RunForecast>> forecast_runs(const std::vector<PublishedRun>& runs,
                                               const cost::SoftwareStack* stack = nullptr);

// The scalars of `stack` that make the mean over the sets of the mean of |log(predicted /
// measured)| of their calibration rows least, by a simplex search from the present values (Nelder
// and Mead, The Computer Journal 7, 1965). Shares stay within those that hardware reached in
// measurements, misalignment stays as it is. Runs of other stacks do not count. Deterministic.
// Fails as predict_runs(), or with kInvalidInput where no row counts.
Result<cost::Calibration> fit_calibration(const cost::SoftwareStack& stack,
                                          const std::vector<std::vector<PublishedRun>>& sets);

}  // namespace regatta::replay
