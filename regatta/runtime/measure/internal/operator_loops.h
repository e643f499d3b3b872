// measure/internal/operator_loops.h: the loops of a worker: each task runs the functions that the
// training runtime itself calls (train/ops.h), on tensors of its own.
#pragma once

#include <functional>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/gpu/device/device.h"
#include "regatta/runtime/measure/measurement_schedule.h"
#include "regatta/runtime/measure/summarize.h"

namespace regatta::measure {

// One round of the task, ready to run. Its inputs are constant: that changes the speed of no
// operator, and drawing values would take longer than the measurement.
std::function<void()> prepare(const DeviceTask& task);

// The time for which the device worked so far: processor time of the calling thread on a CPU, the
// wall clock on others.
Seconds busy_time(const device::ComputeDevice& device);

struct LoopOptions {
  Seconds time;         // rounds run for at least this long, and once
  bool warm_up = true;  // a first round does not count
};

// Runs rounds of the task. The sample's rank and task are left for the caller. Fails with
// kUnsupported when the library of tensors refuses the task.
Result<DeviceSample> run_task(const DeviceTask& task, const device::ComputeDevice& device,
                              const LoopOptions& options);

}  // namespace regatta::measure
