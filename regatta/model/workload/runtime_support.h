// workload/runtime_support.h: the plannable features that the training runtime
// (regatta/runtime/train) executes.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::workload {

// The first unsupported feature, "zero 3", and its replacement, "zero 0"; empty texts when it
// executes all of the strategy. A vocabulary that tp does not divide is left to check_runnable().
struct UnsupportedFeature {
  std::string what;
  std::string instead;
};
UnsupportedFeature find_unsupported_feature(const ModelShape& model, const Strategy& strategy,
                                            Precision precision);

// Whether it executes this strategy. Fails with kUnsupported for an unsupported feature and with
// kInvalidInput for a vocabulary that tp does not divide: the runtime pads none.
Status check_runnable(const ModelShape& model, const Strategy& strategy, Precision precision);

// Whether it executes the job as far as the job fixes it; kInvalidInput too when data or steps are
// missing, or the vocabulary has less than the 256 words that bytes are.
Status check_runnable(const Job& job);

}  // namespace regatta::workload
