// trainer/training_request.h: the training job that a submitted job may name instead of a command.
#pragma once

#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/job.h"

namespace regatta::trainer {

// The program of each rank, beside the agent, and the variable with the job as JSON.
inline constexpr const char* kTrainerProgram = "regatta-trainer";
inline constexpr const char* kTrainingVariable = "REGATTA_TRAINING";

// The job of the map `train` of a submitted job: the keys of a job file (docs/formats/job.md), but
// `name` may be missing, paths are absolute, and models are not read from files. kInvalidInput and
// kUnsupported name key and remedy; so do jobs that the trainer does not run.
Result<workload::Job> parse_training(std::string_view json);

}  // namespace regatta::trainer
