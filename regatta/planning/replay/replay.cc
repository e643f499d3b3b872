#include "regatta/planning/replay/replay.h"

#include <utility>

#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::replay {
namespace {

// The predicted time and memory of a run.
struct Predicted {
  Seconds step;
  cost::GpuMemory memory;
  double memory_share = 0;
};

Result<Predicted> under_recompute(const PublishedRun& run, const workload::Strategy& strategy,
                                  const cost::SoftwareStack& stack) {
  REGATTA_TRY(estimate, plan::estimate_step({.model = run.model,
                                             .strategy = strategy,
                                             .global_batch = run.global_batch,
                                             .precision = run.precision,
                                             .server = run.server,
                                             .stack = stack}));
  const auto capacity = static_cast<double>(run.server.device.memory.value);
  return Predicted{estimate.step.total(), estimate.memory, estimate.memory.total() / capacity};
}

Result<Predicted> on_equal_servers(const PublishedRun& run, const workload::Strategy& strategy,
                                   const cost::SoftwareStack& stack) {
  if (!run.is_recompute_open) return under_recompute(run, strategy, stack);
  workload::Strategy open = strategy;
  for (const workload::Recompute recompute :
       {workload::Recompute::kNone, workload::Recompute::kPointwise,
        workload::Recompute::kExperts}) {
    open.recompute = recompute;
    REGATTA_TRY(all, under_recompute(run, open, stack));
    if (all.memory_share <= 1) return all;  // it ran
  }
  open.recompute = workload::Recompute::kFull;
  return under_recompute(run, open, stack);
}

Result<Predicted> on_cluster(const PublishedRun& run, const workload::Strategy& strategy,
                             const cost::SoftwareStack& stack) {
  const workload::StrategyRequest nothing;
  plan::PlanningProblem problem{.model = run.model,
                                .global_batch = run.global_batch,
                                .precision = run.precision,
                                .request = nothing,
                                .server = run.cluster->type_of(ServerId{0}),
                                .stack = stack,
                                .cluster = &*run.cluster};
  const plan::PlanningProblem whole =
      plan::on_servers(std::move(problem), *plan::servers_without(*run.cluster, {}));
  REGATTA_TRY(ran, plan::plan_in_rank_order(whole, strategy, run.layers));
  const cost::GpuMemory& memory = ran.estimate.memory;
  return Predicted{ran.estimate.step.total(), memory,
                   memory.total() / static_cast<double>(ran.capacity.value)};
}

Result<Predicted> predicted(const PublishedRun& run, const workload::Strategy& strategy,
                            const cost::SoftwareStack& stack) {
  return run.cluster ? on_cluster(run, strategy, stack) : on_equal_servers(run, strategy, stack);
}

// The predicted value of the run's measured quantity.
Result<double> value_of(const PublishedRun& run, const workload::Strategy& strategy,
                        const cost::SoftwareStack& stack) {
  REGATTA_TRY(all, predicted(run, strategy, stack));
  const cost::GpuMemory& memory = all.memory;
  switch (run.quantity) {
    case MeasuredQuantity::kStep:
      return all.step.value;
    case MeasuredQuantity::kMemory:
    case MeasuredQuantity::kFailure:
      return memory.total();
    case MeasuredQuantity::kState:
      return memory.weights + memory.gradients + memory.optimizer;
    case MeasuredQuantity::kActivations:
      return memory.activations;
  }
  return 0.0;
}

// The least over the micro-batches that the source leaves open, or the error of the smallest.
Result<double> least_value(const PublishedRun& run, const cost::SoftwareStack& stack) {
  workload::Strategy strategy = run.strategy;
  strategy.micro_batch = 1;
  Result<double> least = value_of(run, strategy, stack);
  for (const int micro_batch : {2, 4, 8}) {
    strategy.micro_batch = micro_batch;
    const Result<double> value = value_of(run, strategy, stack);
    if (value && (!least || *value < *least)) least = value;
  }
  return least;
}

Result<const cost::SoftwareStack*> stack_of(const PublishedRun& run,
                                            const cost::SoftwareStack* given) {
  const cost::SoftwareStack* used = given != nullptr ? given : cost::find_software_stack(run.stack);
  if (used != nullptr) return used;
  return Error{Code::kInvalidInput, run.name + ": there is no software stack '" + run.stack +
                                        "'; add it to cost/software_stack.cc"};
}

}  // namespace

Result<std::vector<RunForecast>> forecast_runs(const std::vector<PublishedRun>& runs,
                                               const cost::SoftwareStack* stack) {
  std::vector<RunForecast> outlooks;
  for (const PublishedRun& run : runs) {
    REGATTA_TRY(used, stack_of(run, stack));
    const auto all = predicted(run, run.strategy, *used);
    if (!all) return Error{all.error().code, run.name + ": " + all.error().message};
    outlooks.push_back({all->step, all->memory_share});
  }
  return outlooks;
}

Result<std::vector<PredictionPair>> predict_runs(const std::vector<PublishedRun>& runs,
                                                 const cost::SoftwareStack* stack) {
  std::vector<PredictionPair> pairs;
  for (const PublishedRun& run : runs) {
    REGATTA_TRY(used, stack_of(run, stack));
    const auto value = run.strategy.micro_batch == 0 ? least_value(run, *used)
                                                     : value_of(run, run.strategy, *used);
    if (!value) return Error{value.error().code, run.name + ": " + value.error().message};
    pairs.push_back({*value, run.measured, run.group});
  }
  return pairs;
}

}  // namespace regatta::replay
