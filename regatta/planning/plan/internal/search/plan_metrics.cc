#include "regatta/planning/plan/plan_metrics.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/search/heterogeneous_search.h"
#include "regatta/planning/plan/internal/search/simulated_search.h"

namespace regatta::plan {
namespace {

constexpr double kChange = 0.1;

void faster_products(MachineModel& machine) {
  const double factor = 1 + kChange;
  machine.engines.products.peak = machine.engines.products.peak * factor;
  machine.engines.scores.peak = machine.engines.scores.peak * factor;
  machine.engines.fused_attention = machine.engines.fused_attention * factor;
}
void faster_memory(MachineModel& machine) {
  const double factor = 1 + kChange;
  machine.engines.products.memory = machine.engines.products.memory * factor;
  machine.engines.scores.memory = machine.engines.scores.memory * factor;
}
void faster_links(MachineModel& machine) {
  machine.network.link = machine.network.link * (1 + kChange);
}
void faster_network(MachineModel& machine) {
  for (cost::ScopeBandwidth& reach : machine.network.reach)
    reach.rate = reach.rate * (1 + kChange);
}

// The same of CPUs, whose rates are known one by one.
void faster_products_of_cpus(cost::Rates& rates) {
  for (auto& [name, device] : rates.devices)
    for (cost::MatmulRate& rate : device.matmul)
      rate.rate = rate.rate * (1 + kChange);
}
void faster_memory_of_cpus(cost::Rates& rates) {
  for (auto& [name, device] : rates.devices) {
    device.copy_bandwidth = device.copy_bandwidth * (1 + kChange);
    device.pointwise_bandwidth = device.pointwise_bandwidth * (1 + kChange);
    for (cost::PointwiseRate& rate : device.pointwise)
      rate.bandwidth = rate.bandwidth * (1 + kChange);
  }
}
void faster_paths(cost::Rates& rates, bool in_server) {
  for (cost::PathRates& path : rates.paths)
    if ((path.path == cost::PathClass::kSameServer) == in_server)
      path.bandwidth = path.bandwidth * (1 + kChange);
}

// A resource of the cluster that is made faster.
struct Change {
  const char* name;
  void (*of_gpus)(MachineModel&);
  void (*of_cpus)(cost::Rates&);
};
constexpr Change kChanges[] = {
    {"matrix_peak", faster_products, faster_products_of_cpus},
    {"memory_bandwidth", faster_memory, faster_memory_of_cpus},
    {"link_bandwidth", faster_links, [](cost::Rates& rates) { faster_paths(rates, true); }},
    {"network_rate", faster_network, [](cost::Rates& rates) { faster_paths(rates, false); }}};

// The step of the plan where the resource is faster.
Seconds step_with(const PlanningProblem& problem, const Plan& plan, const Change& change) {
  if (plan.simulated) {
    cost::Rates rates = problem.simulated->rates;
    change.of_cpus(rates);
    return simulate_again(problem, plan, rates);
  }
  if (is_heterogeneous(problem)) {
    const auto again = estimate_again(problem, plan, change.of_gpus);
    return again ? again->step.total() : plan.estimate.step.total();
  }
  MachineModel changed = problem.machine;
  change.of_gpus(changed);
  const EstimateInput input = input_of(problem, plan.strategy);
  return assemble_estimate(input, changed, micro_batch_work(input, changed),
                           micro_batches_of(problem, plan.strategy))
      .step.total();
}

std::vector<Sensitivity> sensitivities(const PlanningProblem& problem, const Plan& plan) {
  std::vector<Sensitivity> all;
  for (const Change& change : kChanges)
    all.push_back(
        {change.name, kChange, step_with(problem, plan, change) / plan.estimate.step.total() - 1});
  return all;
}

std::string binding_of(const Plan& plan) {
  std::vector<NamedStepPart> parts = plan_parts(plan);
  std::sort(parts.begin(), parts.end(),
            [](const NamedStepPart& a, const NamedStepPart& b) { return a.time > b.time; });
  const Seconds all = plan.estimate.step.total();
  std::string text;
  for (std::size_t i = 0; i < 3; ++i) {
    if (parts[i].time / all < 0.02) break;
    text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", parts[i].name,
                        100 * (parts[i].time / all));
  }
  return text;
}

// Whether published runs of such a model were compared on every type of device; measured steps of
// CPUs were.
bool was_compared(const PlanningProblem& problem) {
  const bool has_own = has_experts(problem.model) ? problem.stack.own_experts.count > 0
                                                  : problem.stack.own_dense.count > 0;
  if (has_own || problem.simulated) return true;
  const auto is_known = [&](const topo::ServerType& server) {
    return cost::was_compared({.device = server.device.name,
                               .precision = problem.precision,
                               .has_experts = has_experts(problem.model)});
  };
  if (problem.cluster == nullptr) return is_known(problem.server);
  return std::ranges::all_of(
      problem.servers, [&](ServerId server) { return is_known(problem.cluster->type_of(server)); });
}

}  // namespace

std::vector<NamedStepPart> plan_parts(const Plan& plan) {
  if (!plan.simulated) return named_step_parts(plan.estimate.step);
  std::vector<NamedStepPart> parts;
  for (const workload::Phase phase : workload::kPhases)
    parts.push_back({std::string(to_string(phase)), plan.simulated->prediction.phases[phase]});
  return parts;
}

std::vector<cost::GpuMemory> stage_memories(const PlanningProblem& problem, const Plan& plan) {
  if (plan.simulated) return simulated_memory_by_stage(problem, plan.strategy);
  if (!is_heterogeneous(problem))
    return memory_by_stage(input_of(problem, plan.strategy), problem.machine,
                           micro_batches_of(problem, plan.strategy));
  std::vector<cost::GpuMemory> memories;
  const auto again = estimate_again(problem, plan);
  REGATTA_CHECK(again.has_value());
  for (const HeterogeneousStage& stage : again->stages)
    memories.push_back(stage.memory);
  return memories;
}

std::vector<int> layers_of_stages(const PlanningProblem& problem, const Plan& plan) {
  std::vector<int> layers;
  for (int stage = 0; stage < plan.strategy.pp; ++stage)
    layers.push_back(workload::stage_layers(problem.model, plan.strategy, stage).count);
  return layers;
}

FlopsPerSecond rate_per_device(const PlanningProblem& problem, const Plan& plan) {
  const Flops work = model_flops(problem.model, problem.global_batch);
  return {work.value / (plan.estimate.step.total().value * problem.devices)};
}

double mfu(const PlanningProblem& problem, const Plan& plan) {
  return rate_per_device(problem, plan) / problem.machine.engines.products.peak;
}

std::string memory_shortfall(const PlanningProblem& problem, const Plan& plan) {
  const MemoryFit fit = memory_fit(problem, plan);
  if (fit == MemoryFit::kFits) return "";
  return fmt::format(
      "needs {} of the {} of a device: {}; choose a larger tp, pp or zero, or "
      "recompute full",
      format_bytes(plan.estimate.memory.total()), format_bytes(capacity_of(problem, plan)),
      fit == MemoryFit::kDoesNot ? "it does not fit" : "too close to be sure that it fits");
}

PredictionInterval prediction_interval(const PlanningProblem& problem, const Plan& plan) {
  const Seconds step = plan.estimate.step.total();
  const bool is_compared = was_compared(problem);
  cost::PredictionErrorRange spread = cost::prediction_error_range(problem.stack, problem.model);
  if (!is_compared) spread = cost::widened(spread);
  return {step * spread.low, step * spread.high, is_compared};
}

PlanMetrics plan_metrics(const PlanningProblem& problem, const Plan& plan) {
  PlanMetrics answer;
  const Seconds step = plan.estimate.step.total();
  const double device_seconds = step.value * problem.devices;
  const Flops work = model_flops(problem.model, problem.global_batch);
  const Flops again =
      recomputed_flops(problem.model, problem.global_batch, plan.strategy.recompute);
  answer.per_device = rate_per_device(problem, plan);
  answer.hardware_per_device = {(work.value + again.value) / device_seconds};
  answer.mfu = mfu(problem, plan);
  answer.tokens_per_s = static_cast<double>(problem.global_batch) * problem.model.seq / step.value;
  answer.fit = memory_fit(problem, plan);
  answer.interval = prediction_interval(problem, plan);
  answer.sensitivities = sensitivities(problem, plan);
  answer.binding = binding_of(plan);
  return answer;
}

}  // namespace regatta::plan
