#include "regatta/planning/plan/internal/search/simulated_search.h"

#include <memory>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/workload/runtime_support.h"
#include "regatta/planning/plan/internal/placement/placement_candidates.h"
#include "regatta/planning/plan/internal/search/best_plans.h"

namespace regatta::plan {
namespace {

using workload::Phase;

StepBreakdown breakdown_of(const workload::PhaseTimes& phases) {
  return {.matmul = phases[Phase::kForward] + phases[Phase::kBackward],
          .recompute = phases[Phase::kRecompute],
          .host = phases[Phase::kOther],
          .tp_comm = phases[Phase::kTpComm],
          .pp_comm = phases[Phase::kPpComm],
          .dp_comm = phases[Phase::kDpComm],
          .bubble = phases[Phase::kBubble],
          .optimizer = phases[Phase::kOptimizer]};
}

cost::GpuMemory memory_of(const MemoryUse& use) {
  const auto bytes = [](Bytes part) { return static_cast<double>(part.value); };
  return {.weights = bytes(use.weights),
          .gradients = bytes(use.gradients),
          .optimizer = bytes(use.optimizer),
          .activations = bytes(use.activations),
          .working = bytes(use.buffers)};
}

Plan plan_of(const PlanningProblem& problem, std::shared_ptr<const SimulatedPlan> simulated) {
  const Prediction& predicted = simulated->prediction;
  const workload::Strategy& strategy = simulated->strategy;
  const topo::DeviceRef fullest = simulated->placement[predicted.memory_rank.index()];
  return {.strategy = strategy,
          .estimate = {.step = breakdown_of(predicted.phases),
                       .memory = memory_of(predicted.memory),
                       .worst_stage = predicted.memory_rank.value / strategy.stage_ranks()},
          .capacity = problem.cluster->type_of(fullest.server).device.memory,
          .simulated = std::move(simulated)};
}

workload::Job job_of(const PlanningProblem& problem) {
  workload::Job job = problem.simulated->job;
  job.strategy = problem.request;
  return job;
}

std::vector<topo::DeviceRef> devices_of(const PlanningProblem& problem) {
  std::vector<topo::DeviceRef> devices;
  for (const ServerId server : problem.servers)
    for (int i = 0; i < problem.cluster->type_of(server).device_count; ++i)
      devices.push_back({server, i});
  return devices;
}

}  // namespace

Result<PlanSearchResult> search_simulated(const PlanningProblem& problem, int top) {
  REGATTA_TRY(found, search_simulated_plans(job_of(problem), *problem.cluster,
                                            problem.simulated->rates, devices_of(problem)));
  const auto all = std::make_shared<const SimulatedSearchResult>(std::move(found));
  BestPlans tally(0, true);
  std::vector<Plan> ranked;
  for (const SimulatedPlan& one : all->ranked) {
    Plan plan = plan_of(problem, std::shared_ptr<const SimulatedPlan>(all, &one));
    tally.count(plan, true);
    if (ranked.size() < static_cast<std::size_t>(top)) ranked.push_back(std::move(plan));
  }
  PlanSearchResult result = tally.result(0);
  result.ranked = std::move(ranked);
  result.points = all->evaluated;
  result.evaluated = all->evaluated;
  result.simulated = all;
  return result;
}

Result<Plan> exact_simulated_plan(const PlanningProblem& problem,
                                  const workload::Strategy& strategy) {
  const workload::Job job = job_of(problem);
  REGATTA_TRY_DO(workload::check_runnable(job.model, strategy, job.precision));
  SimulatedPlan plan{.strategy = strategy, .placement = devices_of(problem)};
  if (!job.placement.empty()) {
    REGATTA_TRY(placement, parse_placement(job.placement, *problem.cluster));
    plan.placement = std::move(placement);
  }
  REGATTA_TRY(predicted,
              predict(job, *problem.cluster, problem.simulated->rates, strategy, plan.placement));
  plan.prediction = std::move(predicted);
  plan.placement_name = name_placement(*problem.cluster, strategy, plan.placement);
  return plan_of(problem, std::make_shared<const SimulatedPlan>(std::move(plan)));
}

Seconds simulate_again(const PlanningProblem& problem, const Plan& plan, const cost::Rates& rates) {
  const auto predicted =
      predict(job_of(problem), *problem.cluster, rates, plan.strategy, plan.simulated->placement);
  REGATTA_CHECK(predicted.has_value());
  return predicted->step_time;
}

std::vector<cost::GpuMemory> simulated_memory_by_stage(const PlanningProblem& problem,
                                                       const workload::Strategy& strategy) {
  std::vector<cost::GpuMemory> stages;
  for (int stage = 0; stage < strategy.pp; ++stage)
    stages.push_back(memory_of(cost::rank_memory(problem.model, strategy, problem.precision, stage,
                                                 micro_batches_of(problem, strategy))));
  return stages;
}

}  // namespace regatta::plan
