#include "regatta/planning/plan/estimated_plan_search.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/search/best_plans.h"
#include "regatta/planning/plan/internal/search/memory_remedy.h"
#include "regatta/planning/plan/internal/search/plan_families.h"
#include "regatta/planning/plan/internal/search/search_failure.h"
#include "regatta/planning/plan/internal/search/stage_split.h"
#include "regatta/planning/plan/internal/search/strategy_space.h"

namespace regatta::plan {
namespace {

using workload::Strategy;

// All strategies of some degrees and a micro-batch.
struct StrategyGroup {
  Strategy staged;
  std::size_t work = 0;    // index
  std::size_t family = 0;  // the same for groups of the same degrees
  int micro_batches = 0;
  StrategyLowerBound bound;
};

// Calls `job` with 0 to count - 1, spread over the threads in the order of their numbers.
template <typename Job>
void spread(std::size_t count, int threads, const Job& job) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&](int thread) {
    for (std::size_t i = next++; i < count; i = next++)
      job(i, thread);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread)
    others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others)
    other.join();
}

class EstimatedPlanSearch {
 public:
  EstimatedPlanSearch(const PlanningProblem& problem, SearchMode mode, int top, int threads)
      : problem_(problem),
        mode_(mode),
        top_(static_cast<std::size_t>(std::max(1, top))),
        threads_(std::max(1, threads)),
        space_{.model = problem.model,
               .global_batch = problem.global_batch,
               .request = problem.request,
               .devices = problem.devices,
               .server_devices = problem.machine.network.devices,
               .every_form = problem.every_form,
               .accepts = problem.accepts} {}

  EstimatedSearchResult run() {
    works_ = work_strategies(space_);
    measure_works();
    if (mode_ == SearchMode::kPruned)
      std::sort(groups_.begin(), groups_.end(), [](const StrategyGroup& a, const StrategyGroup& b) {
        return std::pair(a.bound.time, a.staged) < std::pair(b.bound.time, b.staged);
      });
    limits_.emplace(number_families(), top_);
    const BestPlans none(families_, mode_ == SearchMode::kExhaustive);
    std::vector<BestPlans> tallies(static_cast<std::size_t>(threads_), none);
    std::vector<std::vector<Strategy>> completions(tallies.size());
    spread(groups_.size(), threads_, [&](std::size_t i, int thread) {
      const auto at = static_cast<std::size_t>(thread);
      if (!cannot_win(groups_[i])) look_at(groups_[i], completions[at], tallies[at]);
    });
    BestPlans all = none;
    for (const BestPlans& tally : tallies)
      all.add(tally);
    EstimatedSearchResult result = all.result(top_);
    result.points = points_;
    return result;
  }

 private:
  EstimateInput input_of(const Strategy& strategy) const {
    return plan::input_of(problem_, strategy);
  }

  // Measures the work of every rank for a micro-batch, and the groups that share it.
  void measure_works() {
    measured_.resize(works_.size());
    std::vector<std::vector<StrategyGroup>> groups(works_.size());
    spread(works_.size(), threads_, [&](std::size_t i, int) {
      const std::vector<Strategy> staged = stage_counts(space_, works_[i]);
      if (staged.empty()) return;
      measured_[i] = micro_batch_work(input_of(works_[i]), problem_.machine);
      for (const Strategy& one : staged) {
        StrategyGroup group{.staged = one, .work = i};
        group.micro_batches = micro_batches_of(problem_, one);
        group.bound = strategy_lower_bound(input_of(one), problem_.machine, measured_[i],
                                           group.micro_batches);
        groups[i].push_back(group);
      }
    });
    for (const std::vector<StrategyGroup>& some : groups)
      groups_.insert(groups_.end(), some.begin(), some.end());
  }

  // Numbers the families; the groups of them as TimeLimits takes them.
  std::vector<std::size_t> number_families() {
    std::map<PlanFamily, std::size_t> numbers;
    std::map<PlanFamily, std::size_t> listed;
    std::vector<std::size_t> group_of;
    for (StrategyGroup& group : groups_) {
      const PlanFamily family = family_of(group.staged);
      const auto [known, is_new] = numbers.emplace(family, numbers.size());
      group.family = known->second;
      if (!is_new) continue;
      group_of.push_back(listed.emplace(without_replicas(family), listed.size()).first->second);
    }
    families_ = numbers.size();
    return group_of;
  }

  bool cannot_win(const StrategyGroup& group) const {
    if (mode_ == SearchMode::kExhaustive) return false;
    return limits_->is_beaten(group.family, group.bound.time) ||
           group.bound.memory > static_cast<double>(problem_.server.device.memory.value);
  }

  void look_at(const StrategyGroup& group, std::vector<Strategy>& completions, BestPlans& tally) {
    completions.clear();
    add_completions(space_, group.staged, completions);
    // Those of one schedule follow one another.
    for (std::size_t begin = 0, end = 0; begin < completions.size(); begin = end) {
      const Strategy& first = completions[begin];
      while (end < completions.size() && completions[end].schedule == first.schedule &&
             completions[end].virtual_stages == first.virtual_stages)
        ++end;
      look_at_stages(group, std::span(completions).subspan(begin, end - begin), tally);
    }
  }

  // Strategies of one schedule, with the stages that they have and with balanced ones.
  void look_at_stages(const StrategyGroup& group, std::span<const Strategy> strategies,
                      BestPlans& tally) {
    const MicroBatchWork& work = measured_[group.work];
    Strategy one = strategies.front();
    std::vector<int> layers = one.stage_layers;
    if (!layers.empty()) {
      const StageSplit given = stage_split(input_of(one), work, group.micro_batches);
      offer_all(group, strategies, {&layers, &given, time_of(group, one, &given)}, tally);
      return;
    }
    const Seconds even = time_of(group, one, nullptr);
    offer_all(group, strategies, {&layers, nullptr, even}, tally);
    layers = balanced_layers(input_of(one), work);
    if (layers.empty()) return;
    one.stage_layers = layers;
    if (problem_.accepts && !problem_.accepts(one)) return;
    const StageSplit balanced = stage_split(input_of(one), work, group.micro_batches);
    const Seconds time = time_of(group, one, &balanced);
    if (time < even) offer_all(group, strategies, {&layers, &balanced, time}, tally);
  }

  // How the layers of strategies are split, and what none of them goes below.
  struct Stages {
    const std::vector<int>* layers;
    const StageSplit* split;  // null: evenly
    Seconds least;
  };

  Seconds time_of(const StrategyGroup& group, const Strategy& strategy,
                  const StageSplit* split) const {
    return step_time_lower_bound(input_of(strategy), problem_.machine, measured_[group.work],
                                 group.micro_batches, split);
  }

  void offer_all(const StrategyGroup& group, std::span<const Strategy> strategies,
                 const Stages& stages, BestPlans& tally) {
    points_ += static_cast<long long>(strategies.size());
    const bool is_pruned = mode_ == SearchMode::kPruned;
    if (is_pruned && limits_->is_beaten(group.family, stages.least)) return;
    Strategy with;
    for (const Strategy& strategy : strategies) {
      const Strategy* one = &strategy;
      if (stages.split != nullptr) {
        with = strategy;
        with.stage_layers = *stages.layers;
        one = &with;
      }
      const Estimate estimate =
          assemble_estimate(input_of(*one), problem_.machine, measured_[group.work],
                            group.micro_batches, stages.split);
      const bool fits =
          memory_fit(estimate.memory, problem_.server.device.memory) == MemoryFit::kFits;
      if (tally.offer(group.family, *one, estimate, fits) && is_pruned)
        limits_->lower(group.family, estimate.step.total());
    }
  }

  const PlanningProblem& problem_;
  SearchMode mode_;
  std::size_t top_;
  int threads_;
  StrategySpaceInput space_;
  std::vector<Strategy> works_;
  std::vector<MicroBatchWork> measured_;  // by work
  std::vector<StrategyGroup> groups_;
  std::atomic<long long> points_ = 0;
  std::size_t families_ = 0;
  std::optional<TimeLimits> limits_;
};

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
Result<EstimatedSearchResult> search_without_advice(const PlanningProblem& problem, SearchMode mode,
                                                    int top, int threads) {
  EstimatedSearchResult result = EstimatedPlanSearch(problem, mode, top, threads).run();
  if (!result.ranked.empty()) return result;
  if (!result.smallest && mode == SearchMode::kPruned)
    result = EstimatedPlanSearch(problem, SearchMode::kExhaustive, 1, threads).run();
  if (!result.smallest) return no_strategy_divides(problem);
  return Error{Code::kExhausted, no_strategy_fits(problem, *result.smallest)};
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

std::string to_string(MemoryFit fit) {
  constexpr EnumNames<3> kNames = {"fits", "too close", "does not fit"};
  return enum_name(kNames, fit);
}

Result<EstimatedSearchResult> search_estimated_plans(const PlanningProblem& problem,
                                                     SearchMode mode, int top, int threads) {
  auto result = search_without_advice(problem, mode, top, threads);
  if (result || result.error().code != Code::kExhausted) return result;
  const auto find = [threads](const PlanningProblem& other) -> std::optional<EstimatedPlan> {
    const auto ranked = EstimatedPlanSearch(other, SearchMode::kPruned, 1, threads).run().ranked;
    return ranked.empty() ? std::nullopt : std::optional(ranked.front());
  };
  return Error{Code::kInvalidInput,
               result.error().message + "; " + suggest_memory_remedy(problem, find)};
}

Result<EstimatedPlan> fastest_plan(const PlanningProblem& problem, int threads) {
  REGATTA_TRY(found, search_without_advice(problem, SearchMode::kPruned, 1, threads));
  return found.ranked.front();
}

Result<EstimatedPlan> nearest_plan(const PlanningProblem& problem, int threads) {
  for (const SearchMode mode : {SearchMode::kPruned, SearchMode::kExhaustive}) {
    const auto found = EstimatedPlanSearch(problem, mode, 1, threads).run();
    if (!found.ranked.empty()) return found.ranked.front();
    if (found.smallest) return *found.smallest;
  }
  return no_strategy_divides(problem);
}

Result<Estimate> estimate_on(const PlanningProblem& problem, const Strategy& strategy) {
  REGATTA_TRY(count, workload::micro_batches(problem.model, strategy, problem.global_batch));
  if (strategy.world_size() != problem.devices) {
    return Error{Code::kInvalidInput,
                 fmt::format("{} makes {} ranks, the cluster has {} devices; change a degree",
                             to_string(strategy), strategy.world_size(), problem.devices)};
  }
  const EstimateInput input = input_of(problem, strategy);
  return assemble_estimate(input, problem.machine, micro_batch_work(input, problem.machine), count);
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
