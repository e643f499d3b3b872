// plan/internal/estimate/stage_timeline_memory.h: what a device of each stage holds over the step
// of a timeline.
#pragma once

#include <vector>

#include "regatta/planning/plan/internal/estimate/stage_memory.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::plan {

// Weights, gradients, optimizer, context and working space all the time, as allocators keep it; the
// activations of a micro-batch in a part of the stage from the start of its forward to the end of
// its last gradient there. Their peak is that of StageMemory::of(), where the parts of a stage hold
// the same blocks.
std::vector<MemoryCurve> memory_over_time(const StageTimeline& timeline, const StageMemory& stages);

}  // namespace regatta::plan
