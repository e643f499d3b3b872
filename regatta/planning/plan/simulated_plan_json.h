// plan/simulated_plan_json.h: plans and predictions as JSON, for result.json and --json. Keys carry
// the unit.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::plan {

// ["s0/0","s0/1",...] by rank.
nlohmann::json placement_to_json(const Placement& placement, const topo::Cluster& cluster);

// {"weights_bytes":...,"gradients_bytes":...,"total_bytes":...}
nlohmann::json memory_to_json(const MemoryUse& memory);

// [{"link":"s0.nic0-leaf0","forward":true,"bytes":...}]
nlohmann::json traffic_to_json(const std::vector<LinkTraffic>& traffic, const topo::Graph& graph);

// {"step_time_s":...,"phases":{...},"memory_per_device":{...},"memory_rank":3,"traffic":[...]}; the
// timeline is not in it (workload::timeline_to_json).
nlohmann::json prediction_to_json(const Prediction& prediction, const topo::Graph& graph);

// {"strategy":{...},"placement":[...],"placement_name":"...","predicted":{...}}
nlohmann::json plan_to_json(const SimulatedPlan& plan, const topo::Cluster& cluster,
                            const topo::Graph& graph);

// {"evaluated":...,"ranked":[the first `top` plans],"rejected":[{"strategy":...,"kind":"memory",
// "placement_name":...,"reason":...}]}
nlohmann::json search_to_json(const SimulatedSearchResult& result, const topo::Cluster& cluster,
                              int top);

std::string_view to_string(RejectionReason kind);  // "does_not_divide", "memory", "slower"

}  // namespace regatta::plan
