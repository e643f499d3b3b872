#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimated_plan_metrics.h"

namespace regatta::plan {
namespace {

// The step on a machine that is `changed`.
Seconds step_on(const PlanningProblem& problem, const EstimatedPlan& plan,
                const MachineModel& changed) {
  const EstimateInput input = input_of(problem, plan.strategy);
  return assemble_estimate(input, changed, micro_batch_work(input, changed),
                           micro_batches_of(problem, plan.strategy))
      .step.total();
}

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

std::vector<Sensitivity> sensitivities(const PlanningProblem& problem, const EstimatedPlan& plan) {
  const std::pair<const char*, void (*)(MachineModel&)> changes[] = {
      {"matrix_peak", faster_products},
      {"memory_bandwidth", faster_memory},
      {"link_bandwidth", faster_links},
      {"network_rate", faster_network}};
  std::vector<Sensitivity> all;
  for (const auto& [name, change] : changes) {
    MachineModel changed = problem.machine;
    change(changed);
    const Seconds step = step_on(problem, plan, changed);
    all.push_back({name, kChange, step / plan.estimate.step.total() - 1});
  }
  return all;
}

std::string binding_of(const EstimatedPlan& plan) {
  std::vector<NamedStepPart> parts = named_step_parts(plan.estimate.step);
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

}  // namespace

FlopsPerSecond rate_per_device(const PlanningProblem& problem, const EstimatedPlan& plan) {
  const Flops work = model_flops(problem.model, problem.global_batch);
  return {work.value / (plan.estimate.step.total().value * problem.devices)};
}

double mfu(const PlanningProblem& problem, const EstimatedPlan& plan) {
  return rate_per_device(problem, plan) / problem.machine.engines.products.peak;
}

std::string memory_shortfall(const PlanningProblem& problem, const EstimatedPlan& plan) {
  const MemoryFit fit = memory_fit(plan.estimate.memory, problem.server.device.memory);
  if (fit == MemoryFit::kFits) return "";
  return fmt::format(
      "needs {} of the {} of a device: {}; choose a larger tp, pp or zero, or "
      "recompute full",
      format_bytes(plan.estimate.memory.total()), format_bytes(problem.server.device.memory),
      fit == MemoryFit::kDoesNot ? "it does not fit" : "too close to be sure that it fits");
}

PredictionInterval prediction_interval(const PlanningProblem& problem, const EstimatedPlan& plan) {
  const Seconds step = plan.estimate.step.total();
  const bool has_own = has_experts(problem.model) ? problem.stack.own_experts.count > 0
                                                  : problem.stack.own_dense.count > 0;
  const bool is_compared =
      has_own || cost::was_compared({.device = problem.server.device.name,
                                     .precision = problem.precision,
                                     .has_experts = has_experts(problem.model)});
  cost::PredictionErrorRange spread = cost::prediction_error_range(problem.stack, problem.model);
  if (!is_compared) spread = cost::widened(spread);
  return {step * spread.low, step * spread.high, is_compared};
}

PlanMetrics plan_metrics(const PlanningProblem& problem, const EstimatedPlan& plan) {
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
  answer.fit = memory_fit(plan.estimate.memory, problem.server.device.memory);
  answer.interval = prediction_interval(problem, plan);
  answer.sensitivities = sensitivities(problem, plan);
  answer.binding = binding_of(plan);
  return answer;
}

}  // namespace regatta::plan
