// replay/replay.h: predicts a set of published runs and fits what a stack reaches to them.
#pragma once

#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/cost/stack.h"
#include "regatta/planning/replay/internal/published.h"
#include "regatta/planning/replay/internal/score.h"

namespace regatta::replay {

// Every run under the stack that it names, or under `stack` where one is given; where its source
// does not say the micro-batch, with the fastest of 1, 2, 4 and 8 that the job allows. Fails with
// the error of the first run that cannot be predicted, naming it.
Result<std::vector<Pair>> predict(const std::vector<Published>& runs,
                                  const cost::Stack* stack = nullptr);

// What a planner says of a run before it is tried.
struct Outlook {
  Seconds step;
  double memory_share = 0;  // of the stage that fills its devices most
};
Result<std::vector<Outlook>> outlook(const std::vector<Published>& runs,
                                     const cost::Stack* stack = nullptr);

// The scalars of `stack` that make the mean over the sets of the mean of |log(predicted /
// measured)| of their calibration rows least, by a simplex search from what the stack has (Nelder
// and Mead, The Computer Journal 7, 1965); shares stay within what the hardware was seen to
// reach, misalignment as it is. Runs
// of other stacks do not count. Deterministic. Fails as predict(), or with kInvalidInput where no
// row counts.
Result<cost::Calibration> fit(const cost::Stack& stack,
                              const std::vector<std::vector<Published>>& sets);

}  // namespace regatta::replay
