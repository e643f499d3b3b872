// plan/estimated_plan_json.h: GPU plans as JSON. Keys carry the unit.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "regatta/planning/plan/cluster_sizes.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {

// {"step_time_s","tflops_per_device","hardware_tflops_per_device","mfu","tokens_per_s",
// "memory_per_device_bytes","fits","fit","interval":{"low_s","high_s"},"strategy",
// "breakdown":{"matmul_s",...},"memory":{"weights_bytes",...},"worst_stage",
// "memory_by_stage":[{"weights_bytes",...}],"sensitivities",
// "binding"}
nlohmann::json estimated_plan_to_json(const PlanningProblem& problem, const EstimatedPlan& plan);

// The parts of either, and bytes, which are whole.
nlohmann::json breakdown_to_json(const StepBreakdown& step);
nlohmann::json memory_to_json(const cost::GpuMemory& memory);
long long whole_bytes(double bytes);

// The figures of one plan among many: no sensitivities.
nlohmann::json estimated_plan_row(const PlanningProblem& problem, const EstimatedPlan& plan);

// {"tokens","steps","sizes":[{"servers","devices","strategy","step_time_s",...,"time_s",
// "device_hours","kwh","cost","optimal"}],"left_out":[{"servers","reason"}]}: of each size the
// figures of estimated_plan_row(), of all tokens; "steps" where the job says how many, "cost" where
// there is a price.
nlohmann::json cluster_sizes_to_json(const PlanningProblem& problem, const ClusterSizes& sizes,
                                     double price);

}  // namespace regatta::plan
