// plan/internal/launch/launch_torchtitan_model.h: which of torchtitan's models and flavors a shape
// is.
#pragma once

#include <string>

#include "regatta/model/workload/model.h"

namespace regatta::plan {

struct TorchtitanModel {
  std::string name;        // "llama3"
  std::string flavor;      // "70B"
  std::string definition;  // Python that adds the flavor, where torchtitan has it not
  std::string lacks;       // why none of its models is it: "layer norms"; else ""
};

// Sources: torchtitan/models/{llama3,qwen3,deepseek_v3} of 0.2.
TorchtitanModel torchtitan_model(const workload::ModelShape& model);

}  // namespace regatta::plan
