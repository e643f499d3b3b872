#include "regatta/planning/plan/plan_search.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/search/equal_server_search.h"
#include "regatta/planning/plan/internal/search/heterogeneous_search.h"
#include "regatta/planning/plan/internal/search/memory_remedy.h"
#include "regatta/planning/plan/internal/search/plan_families.h"
#include "regatta/planning/plan/internal/search/search_failure.h"
#include "regatta/planning/plan/internal/search/simulated_search.h"

namespace regatta::plan {
namespace {

using workload::Strategy;

// The one place that chooses how a problem is searched. `ranked` is empty where nothing fits.
Result<PlanSearchResult> search_any(const PlanningProblem& problem, SearchMode mode, int top,
                                    int threads) {
  if (problem.simulated) return search_simulated(problem, top);
  if (is_heterogeneous(problem)) return search_heterogeneous_servers(problem, mode, top, threads);
  return search_equal_servers(problem, mode, top, threads);
}

// Experts that cannot be split as the rest of the block, but can stay whole on a rank, do so;
// tensor ranks then share the tokens.
void fold_where_needed(const workload::StrategyRequest& request, Strategy& strategy) {
  const int ranks = strategy.stage_ranks();
  const long long split = static_cast<long long>(strategy.ep) * strategy.tp;
  if (request.etp || ranks % split == 0 || ranks % strategy.ep != 0) return;
  if (!request.sequence_parallel.value_or(true)) return;
  strategy.etp = 1;
  strategy.sequence_parallel = true;
}

// kExhausted where strategies divide the job and none fits.
Result<PlanSearchResult> search_without_advice(const PlanningProblem& problem, SearchMode mode,
                                               int top, int threads) {
  REGATTA_TRY(result, search_any(problem, mode, top, threads));
  if (!result.ranked.empty()) return result;
  if (!result.smallest && mode == SearchMode::kPruned) {
    REGATTA_TRY(all, search_any(problem, SearchMode::kExhaustive, 1, threads));
    result = std::move(all);
  }
  if (!result.smallest) return no_strategy_divides(problem);
  return Error{Code::kExhausted, no_strategy_fits(problem, *result.smallest)};
}

// A frontier begins with the plan itself where others are as fast and need as much.
void begin_with_plan(std::vector<Plan>& frontier, const Plan& plan) {
  const auto is_alike = [&](const Plan& one) {
    return one.estimate.step.total() >= plan.estimate.step.total() * (1 - kSameTime) &&
           one.estimate.step.total() <= plan.estimate.step.total() * (1 + kSameTime) &&
           one.estimate.memory.total() >= plan.estimate.memory.total() * (1 - kSameTime);
  };
  if (frontier.empty() || !is_alike(frontier.front())) return;
  const auto others = std::find_if_not(frontier.begin(), frontier.end(), is_alike);
  frontier.insert(frontier.erase(frontier.begin(), others), plan);
}

}  // namespace

EstimateInput input_of(const PlanningProblem& problem, const Strategy& strategy) {
  return {.model = problem.model,
          .strategy = strategy,
          .global_batch = problem.global_batch,
          .precision = problem.precision,
          .server = problem.server,
          .stack = problem.stack};
}

int micro_batches_of(const PlanningProblem& problem, const Strategy& strategy) {
  return problem.global_batch / (strategy.dp * strategy.micro_batch);
}

MemoryFit memory_fit(const cost::GpuMemory& memory, Bytes device) {
  const double share = memory.total() / static_cast<double>(device.value);
  if (share > 1) return MemoryFit::kDoesNot;
  return share > kUsableMemory ? MemoryFit::kClose : MemoryFit::kFits;
}

Bytes capacity_of(const PlanningProblem& problem, const Plan& plan) {
  return plan.capacity.value > 0 ? plan.capacity : problem.server.device.memory;
}

MemoryFit memory_fit(const PlanningProblem& problem, const Plan& plan) {
  const MemoryFit fit = memory_fit(plan.estimate.memory, capacity_of(problem, plan));
  return plan.simulated && fit == MemoryFit::kClose ? MemoryFit::kFits : fit;
}

std::string to_string(MemoryFit fit) {
  constexpr EnumNames<3> kNames = {"fits", "too close", "does not fit"};
  return enum_name(kNames, fit);
}

Result<PlanSearchResult> search_plans(const PlanningProblem& problem, SearchMode mode, int top,
                                      int threads) {
  auto result = search_without_advice(problem, mode, top, threads);
  if (result) begin_with_plan(result->frontier, result->ranked.front());
  if (result || result.error().code != Code::kExhausted) return result;
  const auto find = [threads](const PlanningProblem& other) -> std::optional<Plan> {
    const auto found = search_any(other, SearchMode::kPruned, 1, threads);
    if (!found || found->ranked.empty()) return std::nullopt;
    return found->ranked.front();
  };
  return Error{Code::kInvalidInput,
               result.error().message + "; " + suggest_memory_remedy(problem, find)};
}

Result<Plan> fastest_plan(const PlanningProblem& problem, int threads) {
  REGATTA_TRY(found, search_without_advice(problem, SearchMode::kPruned, 1, threads));
  return found.ranked.front();
}

Result<Plan> nearest_plan(const PlanningProblem& problem, int threads) {
  for (const SearchMode mode : {SearchMode::kPruned, SearchMode::kExhaustive}) {
    REGATTA_TRY(found, search_any(problem, mode, 1, threads));
    if (!found.ranked.empty()) return found.ranked.front();
    if (found.smallest) return *found.smallest;
  }
  return no_strategy_divides(problem);
}

Result<Plan> exact_plan(const PlanningProblem& problem, const Strategy& strategy) {
  if (strategy.world_size() != problem.devices) {
    REGATTA_TRY_DO(workload::micro_batches(problem.model, strategy, problem.global_batch));
    return Error{Code::kInvalidInput,
                 fmt::format("{} makes {} ranks, the cluster has {} devices; change a degree",
                             to_string(strategy), strategy.world_size(), problem.devices)};
  }
  if (problem.simulated) return exact_simulated_plan(problem, strategy);
  if (is_heterogeneous(problem)) return exact_heterogeneous_plan(problem, strategy);
  REGATTA_TRY(count, workload::micro_batches(problem.model, strategy, problem.global_batch));
  const EstimateInput input = input_of(problem, strategy);
  return Plan{.strategy = strategy,
              .estimate = assemble_estimate(input, problem.machine,
                                            micro_batch_work(input, problem.machine), count)};
}

Strategy exact_strategy(const workload::StrategyRequest& request, int devices) {
  Strategy strategy = workload::requested(request);
  const int rest = strategy.tp * strategy.pp * strategy.cp;
  if (!request.dp && devices % rest == 0) strategy.dp = devices / rest;
  if (!request.schedule && strategy.virtual_stages > 1)
    strategy.schedule = workload::PipelineSchedule::kInterleaved;
  fold_where_needed(request, strategy);
  return strategy;
}

}  // namespace regatta::plan
