#include <algorithm>
#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::plan {

using nlohmann::json;

std::string_view to_string(RejectionReason kind) {
  switch (kind) {
    case RejectionReason::kDoesNotDivide:
      return "does_not_divide";
    case RejectionReason::kMemory:
      return "memory";
    case RejectionReason::kSlower:
      return "slower";
  }
  return "";
}

json placement_to_json(const Placement& placement, const topo::Cluster& cluster) {
  json list = json::array();
  for (const topo::DeviceRef device : placement)
    list.push_back(topo::to_string(cluster, device));
  return list;
}

json memory_to_json(const MemoryUse& memory) {
  return {
      {"weights_bytes", memory.weights.value},     {"gradients_bytes", memory.gradients.value},
      {"optimizer_bytes", memory.optimizer.value}, {"activations_bytes", memory.activations.value},
      {"buffers_bytes", memory.buffers.value},     {"total_bytes", memory.total().value}};
}

json traffic_to_json(const std::vector<LinkTraffic>& traffic, const topo::Graph& graph) {
  json list = json::array();
  for (const LinkTraffic& one : traffic) {
    list.push_back({{"link", graph.links[one.link.link.index()].name},
                    {"forward", one.link.forward},
                    {"bytes", one.bytes.value}});
  }
  return list;
}

json prediction_to_json(const Prediction& prediction, const topo::Graph& graph) {
  return {{"step_time_s", prediction.step_time.value},
          {"phases", workload::phases_to_json(prediction.phases)},
          {"memory_per_device", memory_to_json(prediction.memory)},
          {"memory_rank", prediction.memory_rank.value},
          {"traffic", traffic_to_json(prediction.traffic, graph)}};
}

json plan_to_json(const SimulatedPlan& plan, const topo::Cluster& cluster,
                  const topo::Graph& graph) {
  return {{"strategy", workload::strategy_to_json(plan.strategy)},
          {"placement", placement_to_json(plan.placement, cluster)},
          {"placement_name", plan.placement_name},
          {"predicted", prediction_to_json(plan.prediction, graph)}};
}

json search_to_json(const SimulatedSearchResult& result, const topo::Cluster& cluster, int top) {
  const topo::Graph graph = topo::build_graph(cluster);
  json ranked = json::array();
  const std::size_t count =
      std::min(result.ranked.size(), static_cast<std::size_t>(std::max(0, top)));
  for (std::size_t i = 0; i < count; ++i)
    ranked.push_back(plan_to_json(result.ranked[i], cluster, graph));
  json rejected = json::array();
  for (const RejectedStrategy& one : result.rejected) {
    rejected.push_back({{"strategy", workload::strategy_to_json(one.strategy)},
                        {"kind", to_string(one.kind)},
                        {"placement_name", one.placement_name},
                        {"reason", one.reason}});
  }
  return {{"evaluated", result.evaluated}, {"ranked", ranked}, {"rejected", rejected}};
}

}  // namespace regatta::plan
