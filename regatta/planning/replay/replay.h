// replay/replay.h: predicts a set of published runs.
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

}  // namespace regatta::replay
