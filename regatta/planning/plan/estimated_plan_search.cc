#include "regatta/planning/plan/estimated_plan_search.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/search/memory_remedy.h"
#include "regatta/planning/plan/internal/search/stage_split.h"
#include "regatta/planning/plan/internal/search/strategy_space.h"

namespace regatta::plan {
namespace {

using workload::Strategy;

bool is_faster(const EstimatedPlan& a, const EstimatedPlan& b) {
  const Seconds left = a.estimate.step.total();
  const Seconds right = b.estimate.step.total();
  return left != right ? left < right : a.strategy < b.strategy;
}

bool is_smaller(const EstimatedPlan& a, const EstimatedPlan& b) {
  const double left = a.estimate.memory.total();
  const double right = b.estimate.memory.total();
  return left != right ? left < right : a.strategy < b.strategy;
}

// All strategies of some degrees and a micro-batch.
struct StrategyGroup {
  Strategy staged;
  std::size_t work = 0;  // index
  int micro_batches = 0;
  StrategyLowerBound bound;
};

// The best plans so far, and the counts.
class BestPlans {
 public:
  BestPlans(int top, bool keeps_frontier)
      : top_(static_cast<std::size_t>(std::max(1, top))), keeps_frontier_(keeps_frontier) {}

  void offer(const Strategy& strategy, const Estimate& estimate, bool fits) {
    ++result_.evaluated;
    if (!result_.smallest || estimate.memory.total() <= result_.smallest->estimate.memory.total()) {
      const EstimatedPlan plan{strategy, estimate};
      if (!result_.smallest || is_smaller(plan, *result_.smallest)) result_.smallest = plan;
    }
    if (!fits) return;
    ++result_.fitting;
    if (keeps_frontier_) extend_frontier(strategy, estimate);
    if (is_full() && estimate.step.total() > worst()) return;
    const EstimatedPlan plan{strategy, estimate};
    auto& ranked = result_.ranked;
    ranked.insert(std::upper_bound(ranked.begin(), ranked.end(), plan, is_faster), plan);
    if (ranked.size() > top_) ranked.pop_back();
  }

  void add(const EstimatedSearchResult& other) {
    result_.evaluated += other.evaluated;
    result_.fitting += other.fitting;
    if (other.smallest && (!result_.smallest || is_smaller(*other.smallest, *result_.smallest)))
      result_.smallest = other.smallest;
    for (const EstimatedPlan& plan : other.frontier)
      extend_frontier(plan.strategy, plan.estimate);
    auto& ranked = result_.ranked;
    ranked.insert(ranked.end(), other.ranked.begin(), other.ranked.end());
    std::sort(ranked.begin(), ranked.end(), is_faster);
    if (ranked.size() > top_) ranked.resize(top_);
  }

  // Kept in the order of time, so memory falls along it.
  void extend_frontier(const Strategy& strategy, const Estimate& estimate) {
    auto& frontier = result_.frontier;
    const double memory = estimate.memory.total();
    const Seconds time = estimate.step.total();
    const auto at =
        std::partition_point(frontier.begin(), frontier.end(), [&](const EstimatedPlan& one) {
          const Seconds other = one.estimate.step.total();
          return other != time ? other < time : one.strategy < strategy;
        });
    if (at != frontier.begin() && std::prev(at)->estimate.memory.total() <= memory) return;
    const auto end = std::find_if(at, frontier.end(), [memory](const EstimatedPlan& one) {
      return one.estimate.memory.total() < memory;
    });
    frontier.insert(frontier.erase(at, end), EstimatedPlan{strategy, estimate});
  }

  bool is_full() const { return result_.ranked.size() == top_; }
  Seconds worst() const { return result_.ranked.back().estimate.step.total(); }
  EstimatedSearchResult& result() { return result_; }

 private:
  std::size_t top_;
  bool keeps_frontier_;
  EstimatedSearchResult result_;
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
        top_(top),
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
    const bool is_exhaustive = mode_ == SearchMode::kExhaustive;
    std::vector<BestPlans> tallies(static_cast<std::size_t>(threads_),
                                   BestPlans(top_, is_exhaustive));
    std::vector<std::vector<Strategy>> completions(tallies.size());
    spread(groups_.size(), threads_, [&](std::size_t i, int thread) {
      const auto at = static_cast<std::size_t>(thread);
      const StrategyGroup& group = groups_[i];
      if (mode_ == SearchMode::kPruned && cannot_win(group)) return;
      look_at(group, completions[at], tallies[at]);
      if (!tallies[at].is_full()) return;
      for (double before = limit_.load(), worst = tallies[at].worst().value;
           worst < before && !limit_.compare_exchange_weak(before, worst);) {
      }
    });
    BestPlans all(top_, is_exhaustive);
    for (BestPlans& tally : tallies)
      all.add(tally.result());
    all.result().points = points_;
    return std::move(all.result());
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

  // Strictly slower than what is among the best already, so equals stay.
  bool cannot_win(const StrategyGroup& group) const {
    return group.bound.time.value > limit_.load() ||
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
    if (mode_ == SearchMode::kPruned && stages.least.value > limit_.load()) return;
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
      tally.offer(*one, estimate,
                  memory_fit(estimate.memory, problem_.server.device.memory) == MemoryFit::kFits);
    }
  }

  const PlanningProblem& problem_;
  SearchMode mode_;
  int top_;
  int threads_;
  StrategySpaceInput space_;
  std::vector<Strategy> works_;
  std::vector<MicroBatchWork> measured_;  // by work
  std::vector<StrategyGroup> groups_;
  std::atomic<long long> points_ = 0;
  std::atomic<double> limit_ =
      std::numeric_limits<double>::infinity();  // time of the worst of `top`
};

Error nothing_divides(const PlanningProblem& problem) {
  // The request may be impossible by itself.
  if (problem.request.stage_layers && !problem.request.virtual_stages &&
      problem.request.schedule == workload::PipelineSchedule::kInterleaved) {
    return {Code::kInvalidInput,
            "stage_layers: no number above 1 divides all of them, so stages have no equal parts to "
            "interleave; choose multiples of 2, or schedule 1f1b"};
  }
  const Strategy asked = workload::requested(problem.request);
  if (const auto count = workload::micro_batches(problem.model, asked, problem.global_batch);
      !count)
    return count.error();
  if (problem.devices % asked.world_size() != 0 ||
      (problem.request.dp && problem.request.tp && problem.request.pp && problem.request.cp)) {
    return {
        Code::kInvalidInput,
        fmt::format("strategy: tp {} x cp {} x pp {} x dp {} cannot fill {} devices; the degrees "
                    "must multiply to it, so leave one out to have it chosen",
                    asked.tp, asked.cp, asked.pp, asked.dp, problem.devices)};
  }
  return {Code::kInvalidInput,
          fmt::format("no strategy of {} devices divides the job: {} heads, {} layers, batches of "
                      "{}; free a degree of the strategy, or use another number of devices",
                      problem.devices, problem.model.heads, problem.model.layers,
                      problem.global_batch)};
}

// A plan that needs more of a device's memory than this is close.
constexpr double kClose = 0.94;

std::string nothing_fits(const PlanningProblem& problem, const EstimatedPlan& smallest) {
  const auto gib = [](double bytes) { return format_bytes(bytes); };
  const double has = static_cast<double>(problem.server.device.memory.value);
  const double state = smallest.estimate.memory.weights + smallest.estimate.memory.gradients +
                       smallest.estimate.memory.optimizer;
  return fmt::format(
      "no strategy fits {} of {}, of which {:.0f} % can be used: the smallest, {}, needs {} a "
      "device, {} of it weights, gradients and optimizer",
      gib(has), problem.server.device.name, 100 * kClose, to_string(smallest.strategy),
      gib(smallest.estimate.memory.total()), gib(state));
}

// Experts that cannot be split as the rest of the block, but can stay whole on a rank, do so; tensor
// ranks then share the tokens.
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
  if (!result.smallest) return nothing_divides(problem);
  return Error{Code::kExhausted, nothing_fits(problem, *result.smallest)};
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
  return share > kClose ? MemoryFit::kClose : MemoryFit::kFits;
}

std::string to_string(MemoryFit fit) {
  constexpr EnumNames<3> kNames = {"fits", "too close", "does not fit"};
  return enum_name(kNames, fit);
}

Result<EstimatedSearchResult> search_estimated_plans(const PlanningProblem& problem,
                                                     SearchMode mode, int top, int threads) {
  auto result = search_without_advice(problem, mode, top, threads);
  if (result || result.error().code != Code::kExhausted) return result;
  const auto fits = [threads](const PlanningProblem& other) {
    return !EstimatedPlanSearch(other, SearchMode::kPruned, 1, threads).run().ranked.empty();
  };
  return Error{Code::kInvalidInput,
               result.error().message + "; " + suggest_memory_remedy(problem, fits)};
}

Result<EstimatedPlan> fastest_plan(const PlanningProblem& problem, int threads) {
  if (const auto fixed = fixed_strategy(problem.request, problem.devices)) {
    REGATTA_TRY(estimate, estimate_on(problem, *fixed));
    return EstimatedPlan{*fixed, estimate};
  }
  REGATTA_TRY(found, search_without_advice(problem, SearchMode::kPruned, 1, threads));
  return found.ranked.front();
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

std::optional<Strategy> fixed_strategy(const workload::StrategyRequest& request, int devices) {
  Strategy strategy = workload::requested(request);
  const int rest = strategy.tp * strategy.pp * strategy.cp;
  if (!request.micro_batch || !(request.tp || request.pp || request.dp) || devices % rest != 0)
    return std::nullopt;
  if (!request.dp) strategy.dp = devices / rest;
  if (strategy.world_size() != devices) return std::nullopt;
  if (!request.schedule && strategy.virtual_stages > 1)
    strategy.schedule = workload::PipelineSchedule::kInterleaved;
  fold_where_needed(request, strategy);
  return strategy;
}

}  // namespace regatta::plan
