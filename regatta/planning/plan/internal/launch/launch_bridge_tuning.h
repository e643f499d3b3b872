// plan/internal/launch/launch_bridge_tuning.h: tuning of a trained model with Megatron Bridge:
// adapters beside frozen weights (LoRA), and packed samples.
#pragma once

#include <string>

#include "regatta/planning/plan/internal/launch/launch_bridge_model.h"

namespace regatta::plan {

// Lines of Python that stop a script whose environment does not say what tuning starts from; none
// for a model that is trained from the beginning.
std::string tuning_check(const workload::ModelShape& model);
// Samples of different lengths in rows of the sequence, none of which sees another.
PythonCall packed_dataset_call(const LaunchInput& input);
PythonCall adapters_call(const workload::ModelShape& model);

}  // namespace regatta::plan
