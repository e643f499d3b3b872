// train/worker.h: the worker process of a training run: from the spec on its channel to "done".
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/rpc/worker_channel.h"

namespace regatta::train {

// Sets the device up, joins the other ranks, trains, and emits the events that README.md lists,
// except "done". stop_worker() ends it between two micro-batches.
Status run_train_worker(const nlohmann::json& spec, rpc::WorkerChannel& channel);

// Safe in a signal handler and from any thread.
void stop_worker();

}  // namespace regatta::train
