#include "regatta/planning/plan/gpu_answer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/units_text.h"

namespace regatta::plan {
namespace {

// The step on a machine that is `changed`.
Seconds step_on(const GpuProblem& problem, const GpuPlan& plan, const Machine& changed) {
  const EstimateInput input = input_of(problem, plan.strategy);
  return assemble(input, changed, micro_batch_work(input, changed),
                  micro_batches_of(problem, plan.strategy))
      .step.total();
}

constexpr double kChange = 0.1;

void faster_products(Machine& machine) {
  const double factor = 1 + kChange;
  machine.engines.products.peak = machine.engines.products.peak * factor;
  machine.engines.scores.peak = machine.engines.scores.peak * factor;
  machine.engines.fused_attention = machine.engines.fused_attention * factor;
}
void faster_memory(Machine& machine) {
  const double factor = 1 + kChange;
  machine.engines.products.memory = machine.engines.products.memory * factor;
  machine.engines.scores.memory = machine.engines.scores.memory * factor;
}
void faster_links(Machine& machine) {
  machine.network.link = machine.network.link * (1 + kChange);
}
void faster_network(Machine& machine) {
  for (cost::Reach& reach : machine.network.reach)
    reach.rate = reach.rate * (1 + kChange);
}

std::vector<Sensitivity> sensitivities(const GpuProblem& problem, const GpuPlan& plan) {
  const std::pair<const char*, void (*)(Machine&)> changes[] = {{"matrix_peak", faster_products},
                                                                {"memory_bandwidth", faster_memory},
                                                                {"link_bandwidth", faster_links},
                                                                {"network_rate", faster_network}};
  std::vector<Sensitivity> all;
  for (const auto& [name, change] : changes) {
    Machine changed = problem.machine;
    change(changed);
    const Seconds step = step_on(problem, plan, changed);
    all.push_back({name, kChange, step / plan.estimate.step.total() - 1});
  }
  return all;
}

std::string binding_of(const GpuPlan& plan) {
  std::vector<NamedPart> parts = named_parts(plan.estimate.step);
  std::sort(parts.begin(), parts.end(),
            [](const NamedPart& a, const NamedPart& b) { return a.time > b.time; });
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

FlopsPerSecond rate_per_device(const GpuProblem& problem, const GpuPlan& plan) {
  const Flops work = model_flops(problem.model, problem.global_batch);
  return {work.value / (plan.estimate.step.total().value * problem.devices)};
}

double mfu(const GpuProblem& problem, const GpuPlan& plan) {
  return rate_per_device(problem, plan) / problem.machine.engines.products.peak;
}

std::string misfit(const GpuProblem& problem, const GpuPlan& plan) {
  const Fit fit = fit_of(plan.estimate.memory, problem.server.device.memory);
  if (fit == Fit::kFits) return "";
  return fmt::format(
      "needs {} of the {} of a device: {}; choose a larger tp, pp or zero, or "
      "recompute full",
      format_bytes({static_cast<long long>(plan.estimate.memory.total())}),
      format_bytes(problem.server.device.memory),
      fit == Fit::kDoesNot ? "it does not fit" : "too close to be sure that it fits");
}

GpuAnswer answer(const GpuProblem& problem, const GpuPlan& plan) {
  GpuAnswer answer;
  const Seconds step = plan.estimate.step.total();
  const double device_seconds = step.value * problem.devices;
  const Flops work = model_flops(problem.model, problem.global_batch);
  const Flops again =
      recomputed_flops(problem.model, problem.global_batch, plan.strategy.recompute);
  answer.per_device = rate_per_device(problem, plan);
  answer.hardware_per_device = {(work.value + again.value) / device_seconds};
  answer.mfu = mfu(problem, plan);
  answer.tokens_per_s = static_cast<double>(problem.global_batch) * problem.model.seq / step.value;
  answer.fit = fit_of(plan.estimate.memory, problem.server.device.memory);
  const cost::Spread spread = cost::spread_of(problem.stack, problem.model);
  answer.interval = {step * spread.low, step * spread.high};
  answer.sensitivities = sensitivities(problem, plan);
  answer.binding = binding_of(plan);
  return answer;
}

}  // namespace regatta::plan
