// measure/worker.h: one rank of `regatta measure`: the mode `measure` of regatta-worker.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/rpc/worker_channel.h"

namespace regatta::measure {

// Runs the schedule in `spec`, which also holds what agent::Session adds and "device_kind" ("cpu",
// "gpu"): joins the other ranks, runs every device task together with them, then its path tasks.
// Each sample is an event (measure/measurement_schedule_json.h); the caller emits "done".
// The calling thread becomes the compute thread of the device.
Status run_measure_worker(const nlohmann::json& spec, rpc::WorkerChannel& channel);

}  // namespace regatta::measure
