// plan/internal/simulate/simulated_timeline.h: a step that was simulated rank by rank, as the
// timeline of its stages.
#pragma once

#include <vector>

#include "regatta/planning/plan/simulated_plan.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::plan {

// Rows of the first rank of each stage. `estimate` is the step as a plan of a search has it,
// `memories` what a device of each stage holds at its worst moment.
StageTimeline simulated_timeline(const SimulatedPlan& plan, int micro_batches,
                                 const Estimate& estimate,
                                 const std::vector<cost::GpuMemory>& memories);

}  // namespace regatta::plan
