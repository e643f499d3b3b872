// plan/gpu_json.h: GPU plans as JSON. Keys carry the unit.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "regatta/plan/gpu_answer.h"

namespace regatta::plan {

// {"step_time_s","tflops_per_device","hardware_tflops_per_device","mfu","tokens_per_s",
// "memory_per_device_bytes","fits","fit","interval":{"low_s","high_s"},"strategy",
// "breakdown":{"matmul_s",...},"memory":{"weights_bytes",...},"worst_stage","sensitivities",
// "binding"}
nlohmann::json gpu_plan_to_json(const GpuProblem& problem, const GpuPlan& plan);

// The figures of one plan among many: no sensitivities.
nlohmann::json gpu_plan_row(const GpuProblem& problem, const GpuPlan& plan);

}  // namespace regatta::plan
