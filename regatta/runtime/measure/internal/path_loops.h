// measure/internal/path_loops.h: latency and bandwidth between two ranks through the communicator,
// as training uses it.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/measure/measurement_schedule.h"
#include "regatta/runtime/measure/summarize.h"

namespace regatta::measure {

// Both ranks of the pair call this at the same time. The result counts on rank `task.from`: the
// median of half the round trips of 8 bytes, and the median bandwidth of a run of messages that
// both send at the same time, as the neighbours of a ring do: timed until a reply of 8 bytes, less
// one round trip.
Result<PathSample> run_path(comm::Communicator& communicator, const PathTask& task,
                            const MeasurementSchedule& schedule);

}  // namespace regatta::measure
