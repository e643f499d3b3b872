#include "regatta/planning/plan/internal/search/plan_families.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <tuple>

#include "regatta/planning/plan/internal/search/strategy_space.h"

namespace regatta::plan {
namespace {

using workload::Strategy;

// Beside replicas, which are the plain form.
int parallel_forms(const PlanFamily& family) {
  int forms = 0;
  for (const int degree : {family.tp, family.pp, family.cp, family.ep})
    forms += degree > 1 ? 1 : 0;
  return forms;
}

int departures(const Strategy& strategy) {
  return std::max(0, strategy.zero - 1) + (strategy.shard_ranks > 0 ? 1 : 0) +
         (strategy.schedule != workload::PipelineSchedule::k1F1B ? 1 : 0) +
         (strategy.offload != workload::Offload::kNone ? 1 : 0) + (strategy.overlap ? 0 : 1) +
         (strategy.stage_layers.empty() ? 0 : 1);
}

}  // namespace

PlanFamily family_of(const Strategy& strategy) {
  return {.tp = strategy.tp,
          .pp = strategy.pp,
          .dp = strategy.dp,
          .cp = strategy.cp,
          .ep = strategy.ep,
          .etp = strategy.etp};
}

PlanFamily without_replicas(PlanFamily family) {
  family.dp = 1;
  family.cp = 1;
  return family;
}

bool is_simpler(const Plan& a, const Plan& b) {
  const auto key = [](const Plan& plan) {
    const PlanFamily family = family_of(plan.strategy);
    return std::tuple(parallel_forms(family), -family.dp, departures(plan.strategy),
                      plan.estimate.memory.total());
  };
  const auto left = key(a);
  const auto right = key(b);
  return left != right ? left < right : a.strategy < b.strategy;
}

void FamilyBest::offer(const Plan& plan) {
  const Seconds time = plan.estimate.step.total();
  if (!is_near(time)) return;
  const auto at = std::partition_point(near_.begin(), near_.end(), [&](const Plan& one) {
    return one.estimate.step.total() <= time;
  });
  if (at != near_.begin() && !is_simpler(plan, *(at - 1))) return;
  // Later ones are slower: they stay where they are simpler.
  const auto end =
      std::find_if(at, near_.end(), [&](const Plan& one) { return is_simpler(one, plan); });
  near_.insert(near_.erase(at, end), plan);
  fastest_ = near_.front().estimate.step.total().value;
  while (!is_near(near_.back().estimate.step.total()))
    near_.pop_back();
}

std::vector<Plan> ranked_families(std::vector<FamilyBest> families, std::size_t top) {
  std::erase_if(families, [](const FamilyBest& one) { return one.is_empty(); });
  std::sort(families.begin(), families.end(), [](const FamilyBest& a, const FamilyBest& b) {
    return a.fastest() != b.fastest() ? a.fastest() < b.fastest() : is_simpler(a.best(), b.best());
  });
  std::vector<Plan> ranked;
  for (std::size_t begin = 0; begin < families.size() && ranked.size() < top;) {
    const FamilyBest& leader = families[begin];
    std::size_t end = begin;
    const std::size_t first = ranked.size();
    for (; end < families.size() && leader.is_near(Seconds{families[end].fastest()}); ++end)
      ranked.push_back(families[end].best());
    const auto group = ranked.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(group, ranked.end(), is_simpler);
    std::set<PlanFamily> seen;
    ranked.erase(std::remove_if(group, ranked.end(),
                                [&](const Plan& plan) {
                                  const PlanFamily family = family_of(plan.strategy);
                                  return !seen.insert(without_replicas(family)).second;
                                }),
                 ranked.end());
    begin = end;
  }
  if (ranked.size() > top) ranked.resize(top);
  return ranked;
}

std::vector<Strategy> same_plans(const PlanningProblem& problem, const Plan& plan) {
  const workload::StrategyRequest& request = problem.request;
  const Seconds time = plan.estimate.step.total();
  std::vector<Strategy> same;
  if (problem.cluster != nullptr) return same;
  const auto consider = [&](const Strategy& other) {
    if (!workload::admits(request.constraints, other) || other == plan.strategy ||
        std::find(same.begin(), same.end(), other) != same.end())
      return;
    const auto exact = exact_plan(problem, other);
    if (exact && std::abs(exact->estimate.step.total() / time - 1) <= kSameTime &&
        memory_fit(problem, *exact) == MemoryFit::kFits)
      same.push_back(other);
  };
  const int replicas = plan.strategy.dp * plan.strategy.cp;
  if (replicas == 1) return same;
  for (const bool overlap : {true, false}) {
    for (const int zero : {0, 1, 2, 3}) {
      Strategy other = plan.strategy;
      other.overlap = request.overlap.value_or(overlap);
      other.zero = request.zero.value_or(zero);
      if (other.zero > 0 || other.shard_ranks == 0) consider(other);
    }
  }
  if (request.cp || request.dp || request.micro_batch) return same;
  // As many micro-batches of as many tokens a rank.
  const int tokens = plan.strategy.micro_batch * replicas / plan.strategy.cp;
  for (const int cp : divisors(replicas)) {
    Strategy other = plan.strategy;
    other.cp = cp;
    other.dp = replicas / cp;
    other.micro_batch = std::max(1, tokens * cp / replicas);
    if (request.context.value_or(other.context) == other.context) consider(other);
  }
  return same;
}

}  // namespace regatta::plan
