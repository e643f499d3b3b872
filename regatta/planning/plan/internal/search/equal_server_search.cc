#include "regatta/planning/plan/internal/search/equal_server_search.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/search/best_plans.h"
#include "regatta/planning/plan/internal/search/plan_families.h"
#include "regatta/planning/plan/internal/search/spread.h"
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

class EqualServerSearch {
 public:
  EqualServerSearch(const PlanningProblem& problem, SearchMode mode, int top, int threads)
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

  PlanSearchResult run() {
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
    PlanSearchResult result = all.result(top_);
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

}  // namespace

PlanSearchResult search_equal_servers(const PlanningProblem& problem, SearchMode mode, int top,
                                      int threads) {
  return EqualServerSearch(problem, mode, top, threads).run();
}

}  // namespace regatta::plan
