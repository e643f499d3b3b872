// replay/stack_fit.h: fits scalars of a software stack to runs: those of published tables, or the
// few of a user's own.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/planning/replay/internal/prediction_score.h"
#include "regatta/planning/replay/internal/published_run.h"

namespace regatta::replay {

struct FittedStack {
  cost::SoftwareStack stack;
  std::vector<cost::StackScalar> fitted;  // the scalars that were free
};

// The scalars of `stack` that make the mean over the sets of the mean of |log(predicted /
// measured)| of their calibration rows least, by a simplex search from the present values. Free are
// the eight of its calibration, or those that its published rows are kept for. Each stays within
// the limits of hardware. Runs of other stacks do not count. Deterministic. Fails as
// predict_runs(), or with kInvalidInput where no row counts.
Result<FittedStack> fit_to_published(const cost::SoftwareStack& stack,
                                     const std::vector<std::vector<PublishedRun>>& sets);

// A run of the user's, and its step as it is predicted; all in seconds.
struct CalibratedRun {
  std::string name;
  double measured = 0;
  double before = 0;    // by the stack as it was
  double after = 0;     // by the calibrated stack
  double left_out = 0;  // by a stack that was calibrated without the run
};

struct OwnCalibration {
  cost::StackCalibration calibration;
  std::vector<cost::StackScalar> undetermined;  // stay as they were
  std::vector<CalibratedRun> runs;
  PredictionScore before;
  PredictionScore after;
  PredictionScore left_out;
  bool contradicts = false;  // fits to some of the runs made the predictions of the others worse
};

// Calibrates `stack` on runs with a measured step. Any scalar may move, but few runs move few: only
// those do that the runs determine (internal/determined_scalars.h), and they minimize the sum of
// |log(predicted / measured)| / 0.05 over the runs and of half the squares of their own shifts, in
// the widths of internal/fit_coordinate.h. Where there are more than 20 runs, every 20th is left
// out together. Where predictions of runs that were left out are no better than before, no scalar
// moves. The range of each kind of model is that of the predictions that left the run out;
// the stack's range counts as four runs beside them. Deterministic. Fails as predict_runs(), or
// with kInvalidInput without a run.
Result<OwnCalibration> calibrate_stack(const cost::SoftwareStack& stack,
                                       const std::vector<PublishedRun>& runs);

}  // namespace regatta::replay
