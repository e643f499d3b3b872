#include <cmath>

#include <nlohmann/json.hpp>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {

using nlohmann::json;

namespace {

std::string server_names(const topo::Cluster& cluster, const std::vector<ServerId>& servers) {
  std::vector<std::string> names;
  for (const ServerId server : servers)
    names.push_back(cluster.servers[server.index()].name);
  return join(names, " ");
}

}  // namespace

long long whole_bytes(double bytes) {
  return std::llround(bytes);
}

json memory_to_json(const cost::GpuMemory& memory) {
  return {{"weights_bytes", whole_bytes(memory.weights)},
          {"gradients_bytes", whole_bytes(memory.gradients)},
          {"optimizer_bytes", whole_bytes(memory.optimizer)},
          {"activations_bytes", whole_bytes(memory.activations)},
          {"working_bytes", whole_bytes(memory.working)},
          {"context_bytes", whole_bytes(memory.context)},
          {"total_bytes", whole_bytes(memory.total())}};
}

json breakdown_to_json(const std::vector<NamedStepPart>& parts) {
  json all = json::object();
  for (const NamedStepPart& part : parts)
    all[part.name + "_s"] = part.time.value;
  return all;
}

json plan_row(const PlanningProblem& problem, const Plan& plan) {
  const MemoryFit fit = memory_fit(problem, plan);
  const PredictionInterval interval = prediction_interval(problem, plan);
  json row = {{"strategy", workload::strategy_to_json(plan.strategy)},
              {"step_time_s", plan.estimate.step.total().value},
              {"interval",
               {{"low_s", interval.low.value},
                {"high_s", interval.high.value},
                {"compared", interval.is_compared}}},
              {"memory_per_device_bytes", whole_bytes(plan.estimate.memory.total())},
              {"fits", fit == MemoryFit::kFits}};
  if (!plan.micro_batches.empty()) row["micro_batches_of_replicas"] = plan.micro_batches;
  if (!plan.servers.empty()) row["servers"] = server_names(*problem.cluster, plan.servers);
  if (plan.simulated) row["placement_name"] = plan.simulated->placement_name;
  return row;
}

json plan_to_json(const PlanningProblem& problem, const Plan& plan) {
  const PlanMetrics is = plan_metrics(problem, plan);
  json all = plan_row(problem, plan);
  all["tflops_per_device"] = is.per_device.value / 1e12;
  all["hardware_tflops_per_device"] = is.hardware_per_device.value / 1e12;
  all["mfu"] = is.mfu;
  all["tokens_per_s"] = is.tokens_per_s;
  all["fit"] = to_string(is.fit);
  all["breakdown"] = breakdown_to_json(plan_parts(plan));
  all["memory"] = memory_to_json(plan.estimate.memory);
  all["worst_stage"] = plan.estimate.worst_stage;
  all["layers_of_stages"] = layers_of_stages(problem, plan);
  all["memory_by_stage"] = json::array();
  for (const cost::GpuMemory& memory : stage_memories(problem, plan))
    all["memory_by_stage"].push_back(memory_to_json(memory));
  json changes = json::array();
  for (const Sensitivity& one : is.sensitivities)
    changes.push_back(
        {{"what", one.what}, {"change", one.change}, {"step_change", one.step_change}});
  all["sensitivities"] = changes;
  all["binding"] = is.binding;
  return all;
}

json cluster_sizes_to_json(const PlanningProblem& problem, const ClusterSizes& sizes,
                           double price) {
  json all = {{"tokens", sizes.tokens}, {"sizes", json::array()}, {"left_out", json::array()}};
  if (sizes.steps > 0) all["steps"] = sizes.steps;
  for (const ClusterSize& size : sizes.sizes) {
    json one = plan_row(problem, size.plan);
    one.update({{"servers", size.servers},
                {"devices", size.devices},
                {"tokens_per_s", size.tokens_per_s},
                {"mfu", size.mfu},
                {"scaling_efficiency", size.efficiency},
                {"time_s", size.usage.time.value},
                {"device_hours", size.usage.device_hours},
                {"optimal", size.is_optimal}});
    if (size.usage.kilowatt_hours > 0) one["kwh"] = size.usage.kilowatt_hours;
    if (price > 0) one["cost"] = size.usage.cost;
    all["sizes"].push_back(one);
  }
  for (const SkippedSize& one : sizes.left_out)
    all["left_out"].push_back({{"servers", one.servers}, {"reason", one.reason}});
  return all;
}

}  // namespace regatta::plan
