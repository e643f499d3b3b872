// plan/internal/launch/launch_torchtitan_model.h: which of torchtitan's models and flavors a shape
// is.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/model.h"

namespace regatta::plan {

struct TorchtitanModel {
  std::string name;        // "llama3"
  std::string flavor;      // "70B"
  std::string definition;  // of a flavor that torchtitan has not: how its source would write it
};

// Fails with kUnsupported for a shape that none of its models has.
Status check_torchtitan_model(const workload::ModelShape& model);

// Requires check_torchtitan_model(). Sources: torchtitan/models/{llama3,qwen3,deepseek_v3} of 0.2.
TorchtitanModel torchtitan_model(const workload::ModelShape& model);

}  // namespace regatta::plan
