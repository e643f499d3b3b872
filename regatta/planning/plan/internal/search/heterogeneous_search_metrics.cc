#include "regatta/planning/plan/heterogeneous_search.h"

namespace regatta::plan {
namespace {

// The peak of all devices together.
FlopsPerSecond peak_of(const HeterogeneousProblem& problem) {
  const workload::Strategy none;
  FlopsPerSecond sum;
  for (const topo::Server& server : problem.cluster.servers) {
    const topo::ServerType& type = problem.cluster.server_types.at(server.type);
    const MachineModel machine = machine_model({.model = problem.model,
                                                .strategy = none,
                                                .precision = problem.precision,
                                                .server = type,
                                                .stack = problem.stack});
    sum.value += machine.engines.products.peak.value * type.device_count;
  }
  return sum;
}

}  // namespace

HeterogeneousPlanMetrics plan_metrics(const HeterogeneousProblem& problem,
                                      const HeterogeneousPlan& plan) {
  HeterogeneousPlanMetrics answer;
  for (const topo::Server& server : problem.cluster.servers)
    answer.devices += problem.cluster.server_types.at(server.type).device_count;
  const Seconds step = plan.plan.estimate.step.total();
  const Flops work = model_flops(problem.model, problem.global_batch);
  const Flops again =
      recomputed_flops(problem.model, problem.global_batch, plan.plan.strategy.recompute);
  const double device_seconds = step.value * answer.devices;
  answer.per_device = {work.value / device_seconds};
  answer.hardware_per_device = {(work.value + again.value) / device_seconds};
  answer.mfu = work.value / step.value / peak_of(problem).value;
  answer.tokens_per_s = static_cast<double>(problem.global_batch) * problem.model.seq / step.value;
  answer.fit = memory_fit(plan.plan.estimate.memory, plan.capacity);
  const cost::PredictionErrorRange range =
      cost::prediction_error_range(problem.stack, problem.model);
  answer.interval = {step * range.low, step * range.high};
  return answer;
}

}  // namespace regatta::plan
