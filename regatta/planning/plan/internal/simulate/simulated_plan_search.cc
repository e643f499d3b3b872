// The search: every strategy, every candidate placement, swaps for the best, and why the rest lost.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/workload/runtime_support.h"
#include "regatta/planning/plan/internal/placement/placement_candidates.h"
#include "regatta/planning/plan/internal/search/search_failure.h"
#include "regatta/planning/plan/internal/search/strategy_space.h"
#include "regatta/planning/plan/internal/simulate/device_network.h"
#include "regatta/planning/plan/internal/simulate/evaluate_plan.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::plan {
namespace {

using workload::Phase;
using workload::Recompute;
using workload::Strategy;

// The number of strategies whose best placement is improved by swaps, and how often all pairs are
// tried.
constexpr std::size_t kImprovedStrategies = 4;
constexpr int kSwapRounds = 2;
// Swaps try every pair of ranks: beyond this many ranks they would take longer than the rest.
constexpr int kSwapRanksMax = 16;

bool allows(const std::optional<int>& request, int value) {
  return !request || *request == value;
}

// Plans for CPUs run on this machine. The simulation knows no more of a step than the runtime
// executes, except that vocabularies are padded on GPUs.
Status check_known(const workload::Job& job, const topo::Cluster& cluster,
                   const Strategy& strategy) {
  const bool is_cpu =
      std::all_of(cluster.servers.begin(), cluster.servers.end(), [&](const topo::Server& server) {
        return cluster.server_types.at(server.type).device.kind == topo::DeviceKind::kCpu;
      });
  if (is_cpu) return workload::check_runnable(job.model, strategy, job.precision);
  const workload::UnsupportedFeature found =
      workload::find_unsupported_feature(job.model, strategy, job.precision);
  if (found.what.empty()) return {};
  return Error{Code::kUnsupported,
               fmt::format("{} is not yet predicted; use {}", found.what, found.instead)};
}

// Everything (tp, pp, dp) that the request allows; the micro-batch and the rest come later.
std::vector<Strategy> degrees(const workload::StrategyRequest& request, int ranks) {
  std::vector<Strategy> list;
  for (const int tp : divisors(ranks)) {
    for (const int pp : divisors(ranks / tp)) {
      Strategy strategy = workload::requested(request);
      strategy.tp = tp;
      strategy.pp = pp;
      strategy.dp = ranks / tp / pp;
      if (allows(request.tp, tp) && allows(request.pp, pp) && allows(request.dp, strategy.dp))
        list.push_back(strategy);
    }
  }
  return list;
}

// The micro-batches and recomputations to try for one (tp, pp, dp).
std::vector<Strategy> variants(const workload::Job& job, const Strategy& base) {
  std::vector<Strategy> list;
  const int per_replica = job.global_batch / base.dp;
  std::vector<int> micro_batches = divisors(per_replica);
  if (job.strategy.micro_batch) micro_batches = {*job.strategy.micro_batch};
  for (const int micro_batch : micro_batches) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      if (job.strategy.recompute.value_or(recompute) != recompute) continue;
      Strategy one = base;
      one.micro_batch = micro_batch;
      one.recompute = recompute;
      if (workload::admits(job.strategy.constraints, one)) list.push_back(one);
    }
  }
  return list;
}

bool same_prediction(const Prediction& a, const Prediction& b) {
  const double scale = std::max(a.step_time.value, b.step_time.value);
  const auto close = [scale](Seconds x, Seconds y) {
    return std::abs(x.value - y.value) <= 1e-9 * scale;
  };
  if (!close(a.step_time, b.step_time)) return false;
  for (std::size_t i = 0; i < workload::kPhaseCount; ++i) {
    if (!close(a.phases.times[i], b.phases.times[i])) return false;
  }
  return true;
}

bool faster(const SimulatedPlan& a, const SimulatedPlan& b) {
  return a.prediction.step_time < b.prediction.step_time;
}

class SimulatedPlanSearch {
 public:
  SimulatedPlanSearch(const PlanContext& context, std::vector<topo::DeviceRef> devices,
                      bool fixed_placement)
      : context_(context), devices_(std::move(devices)), fixed_placement_(fixed_placement) {}

  Result<SimulatedSearchResult> run() {
    const int ranks = static_cast<int>(devices_.size());
    const auto bases = degrees(context_.job.strategy, ranks);
    if (bases.empty()) return no_such_degrees(ranks);
    for (const Strategy& base : bases) {
      const Status divides = check_degrees(base);
      if (!divides) {
        reject(base, RejectionReason::kDoesNotDivide, divides.error().message);
        continue;
      }
      for (const Strategy& strategy : variants(context_.job, base))
        REGATTA_TRY_DO(try_strategy(strategy));
    }
    if (best_.empty() && result_.rejected.empty()) return nothing_admitted();
    if (best_.empty()) return nothing_fits();
    REGATTA_TRY_DO(improve());
    finish();
    return std::move(result_);
  }

 private:
  Status check_degrees(Strategy base) const {
    REGATTA_TRY_DO(check_known(context_.job, context_.cluster, base));
    base.micro_batch = context_.job.strategy.micro_batch.value_or(1);
    const auto count = workload::micro_batches(context_.job.model, base, context_.job.global_batch);
    return count ? Status{} : Status{count.error()};
  }

  Error no_such_degrees(int ranks) const {
    const workload::StrategyRequest& request = context_.job.strategy;
    std::vector<std::string> asked;
    for (const auto& [name, value] :
         {std::pair{"tp", request.tp}, {"pp", request.pp}, {"dp", request.dp}}) {
      if (value) asked.push_back(fmt::format("{} {}", name, *value));
    }
    const std::string remedy =
        asked.size() == 1
            ? fmt::format("choose a divisor of {}", ranks)
            : fmt::format("the degrees must multiply to {}, so leave one out to have it chosen",
                          ranks);
    return {Code::kInvalidInput, fmt::format("strategy: {} cannot fill {} devices; {}",
                                             join(asked, ", "), ranks, remedy)};
  }

  Error nothing_admitted() const {
    return {Code::kInvalidInput,
            fmt::format("no strategy of {} devices meets {}; leave a constraint out",
                        devices_.size(), constraints_text(context_.job.strategy))};
  }

  Error nothing_fits() const {
    const auto nearest =
        std::min_element(result_.rejected.begin(), result_.rejected.end(),
                         [](const RejectedStrategy& a, const RejectedStrategy& b) {
                           return std::tuple(a.kind != RejectionReason::kMemory, a.excess) <
                                  std::tuple(b.kind != RejectionReason::kMemory, b.excess);
                         });
    const std::string what =
        fmt::format("no plan of {} fits {}: ", context_.job.name, context_.cluster.name);
    // A degree that divides nothing comes with its own remedy.
    if (nearest->kind != RejectionReason::kMemory)
      return {Code::kInvalidInput, what + nearest->reason};
    return {Code::kInvalidInput,
            what + fmt::format("nearest was {}, which {}; use more or larger devices, a smaller "
                               "model or another batch",
                               workload::to_string(nearest->strategy), nearest->reason)};
  }

  void reject(const Strategy& strategy, RejectionReason kind, std::string reason,
              double excess = 0) {
    result_.rejected.push_back({kind, strategy, "", std::move(reason), excess});
  }

  std::vector<Placement> placements_of(const Strategy& strategy) const {
    if (fixed_placement_) return {devices_};
    return candidate_placements(context_.cluster, devices_, strategy);
  }

  Status try_strategy(const Strategy& strategy) {
    std::vector<SimulatedPlan> plans;
    std::optional<MemoryCheck> too_large;
    for (Placement& placement : placements_of(strategy)) {
      const MemoryCheck memory = check_memory(context_, strategy, placement);
      if (!memory.fits()) {
        too_large = memory;
        continue;
      }
      REGATTA_TRY(plan, make_plan(strategy, std::move(placement)));
      add_distinct(plans, std::move(plan));
    }
    if (plans.empty() && too_large) {
      reject(strategy, RejectionReason::kMemory,
             fmt::format("needs {} of {} per device", format_bytes(too_large->use.total()),
                         format_bytes(too_large->device)),
             too_large->use.total() / too_large->device);
    }
    if (plans.empty()) return {};
    std::stable_sort(plans.begin(), plans.end(), faster);
    best_.push_back(std::move(plans));
    return {};
  }

  Result<SimulatedPlan> make_plan(const Strategy& strategy, Placement placement) {
    REGATTA_TRY(prediction, evaluate_plan(context_, strategy, placement));
    ++result_.evaluated;
    SimulatedPlan plan;
    plan.strategy = strategy;
    plan.placement = std::move(placement);
    plan.prediction = std::move(prediction);
    return plan;
  }

  // Among placements with equal predictions, keeps the one whose groups lie closer together: it
  // leaves more of the fabric to others, and effects outside the prediction cannot make it slower.
  void add_distinct(std::vector<SimulatedPlan>& plans, SimulatedPlan plan) const {
    for (SimulatedPlan& one : plans) {
      if (!same_prediction(one.prediction, plan.prediction)) continue;
      if (fabric::is_better(score_of(plan), score_of(one))) one = std::move(plan);
      return;
    }
    plans.push_back(std::move(plan));
  }

  fabric::HopScore score_of(const SimulatedPlan& plan) const {
    return score_placement(context_.cluster, context_.job.model, plan.strategy, plan.placement).all;
  }

  // Swaps devices of two ranks while that makes the best strategies faster.
  Status improve() {
    std::stable_sort(best_.begin(), best_.end(),
                     [](const auto& a, const auto& b) { return faster(a.front(), b.front()); });
    if (fixed_placement_ || static_cast<int>(devices_.size()) > kSwapRanksMax) return {};
    for (std::size_t i = 0; i < std::min(kImprovedStrategies, best_.size()); ++i) {
      SimulatedPlan best = best_[i].front();
      for (int round = 0; round < kSwapRounds; ++round) {
        REGATTA_TRY(improved, swap_round(best));
        if (!improved) break;
      }
      if (faster(best, best_[i].front())) best_[i].insert(best_[i].begin(), std::move(best));
    }
    return {};
  }

  Result<bool> swap_round(SimulatedPlan& best) {
    bool improved = false;
    for (std::size_t a = 0; a < best.placement.size(); ++a) {
      for (std::size_t b = a + 1; b < best.placement.size(); ++b) {
        Placement placement = best.placement;
        std::swap(placement[a], placement[b]);
        if (!check_memory(context_, best.strategy, placement).fits()) continue;
        REGATTA_TRY(plan, make_plan(best.strategy, std::move(placement)));
        // Rounding must not decide.
        if (plan.prediction.step_time.value > best.prediction.step_time.value * (1 - 1e-6))
          continue;
        best = std::move(plan);
        improved = true;
      }
    }
    return improved;
  }

  void finish() {
    std::stable_sort(best_.begin(), best_.end(),
                     [](const auto& a, const auto& b) { return faster(a.front(), b.front()); });
    const double best_time = best_.front().front().prediction.step_time.value;
    for (std::size_t i = 1; i < best_.size(); ++i) {
      const SimulatedPlan& plan = best_[i].front();
      reject(plan.strategy, RejectionReason::kSlower, why_slower(best_.front().front(), plan),
             plan.prediction.step_time.value / best_time);
      result_.rejected.back().placement_name =
          name_placement(context_.cluster, plan.strategy, plan.placement);
    }
    for (auto& plans : best_) {
      for (SimulatedPlan& plan : plans)
        result_.ranked.push_back(std::move(plan));
    }
    std::stable_sort(result_.ranked.begin(), result_.ranked.end(), faster);
    for (SimulatedPlan& plan : result_.ranked)
      plan.placement_name = name_placement(context_.cluster, plan.strategy, plan.placement);
  }

  // The phase that costs most beyond what it costs the best plan.
  static std::string why_slower(const SimulatedPlan& best, const SimulatedPlan& plan) {
    const Phase worst =
        workload::largest_phase_increase(best.prediction.phases, plan.prediction.phases);
    const double time = plan.prediction.step_time.value;
    return fmt::format("{:.2f}x slower: {} takes {:.0f} % of the step",
                       time / best.prediction.step_time.value, workload::to_string(worst),
                       100 * plan.prediction.phases[worst].value / time);
  }

  const PlanContext& context_;
  const std::vector<topo::DeviceRef> devices_;
  const bool fixed_placement_;
  std::vector<std::vector<SimulatedPlan>>
      best_;  // by strategy; its distinct placements, fastest first
  SimulatedSearchResult result_;
};

}  // namespace

Result<SimulatedSearchResult> search_simulated_plans(const workload::Job& job,
                                                     const topo::Cluster& cluster,
                                                     const cost::Rates& rates,
                                                     std::vector<topo::DeviceRef> devices) {
  REGATTA_TRY_DO(check_known(job, cluster, {}));
  REGATTA_TRY_DO(check_rates(job, cluster, rates));
  REGATTA_TRY(network, DeviceNetwork::build(cluster, rates));
  if (devices.empty()) devices = topo::all_devices(cluster);
  if (!job.placement.empty()) {
    REGATTA_TRY(placement, parse_placement(job.placement, cluster));
    devices = std::move(placement);
  }
  const PlanContext context{job, cluster, rates, network};
  return SimulatedPlanSearch(context, std::move(devices), !job.placement.empty()).run();
}

Result<SimulatedPlan> pure_data_parallel(const workload::Job& job, const topo::Cluster& cluster,
                                         const cost::Rates& rates) {
  REGATTA_TRY_DO(check_rates(job, cluster, rates));
  REGATTA_TRY(network, DeviceNetwork::build(cluster, rates));
  const PlanContext context{job, cluster, rates, network};
  SimulatedPlan plan;
  plan.placement = topo::all_devices(cluster);
  Strategy strategy;
  strategy.dp = static_cast<int>(plan.placement.size());
  strategy.overlap = job.strategy.overlap.value_or(true);
  strategy.compression = job.strategy.compression.value_or(workload::GradientCompression::kNone);
  REGATTA_TRY_DO(workload::micro_batches(job.model, strategy, job.global_batch));
  std::vector<int> sizes = divisors(job.global_batch / strategy.dp);
  std::reverse(sizes.begin(), sizes.end());
  MemoryCheck memory;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    for (const int size : sizes) {
      strategy.micro_batch = size;
      strategy.recompute = recompute;
      memory = check_memory(context, strategy, plan.placement);
      if (!memory.fits()) continue;
      REGATTA_TRY(prediction, evaluate_plan(context, strategy, plan.placement));
      plan.strategy = strategy;
      plan.placement_name = name_placement(cluster, strategy, plan.placement);
      plan.prediction = std::move(prediction);
      return plan;
    }
  }
  return Error{Code::kInvalidInput,
               fmt::format("pure data parallelism does not fit: it needs {} of {} per device; "
                           "compare on larger devices or with a smaller model",
                           format_bytes(memory.use.total()), format_bytes(memory.device))};
}

std::vector<SimulatedPlan> sweep_selection(const SimulatedSearchResult& result, int count) {
  constexpr double kRange = 3;
  std::vector<const SimulatedPlan*> pool;  // the best of each strategy, fastest first
  for (const SimulatedPlan& plan : result.ranked) {
    const bool known = std::any_of(pool.begin(), pool.end(), [&](const SimulatedPlan* one) {
      return one->strategy == plan.strategy;
    });
    if (!known) pool.push_back(&plan);
  }
  std::vector<SimulatedPlan> chosen;
  if (pool.empty() || count < 1) return chosen;
  const double best = pool.front()->prediction.step_time.value;
  double last = best;
  for (const SimulatedPlan* plan : pool) {
    if (plan->prediction.step_time.value <= kRange * best) last = plan->prediction.step_time.value;
  }
  const double width = std::log(last / best);
  for (int i = 0; i < count && !pool.empty(); ++i) {
    const double target = count > 1 ? width * i / (count - 1) : 0;
    // Another (tp, pp, dp) is worth as much as an eighth of the range.
    const auto distance = [&](const SimulatedPlan* plan) {
      const bool known = std::any_of(chosen.begin(), chosen.end(), [&](const SimulatedPlan& one) {
        return one.strategy.tp == plan->strategy.tp && one.strategy.pp == plan->strategy.pp &&
               one.strategy.dp == plan->strategy.dp;
      });
      return std::abs(std::log(plan->prediction.step_time.value / best) - target) +
             (known ? width / 8 : 0);
    };
    const auto nearest =
        i == 0 ? pool.begin()
               : std::min_element(pool.begin(), pool.end(),
                                  [&](const SimulatedPlan* a, const SimulatedPlan* b) {
                                    return distance(a) < distance(b);
                                  });
    chosen.push_back(**nearest);
    pool.erase(nearest);
  }
  std::stable_sort(chosen.begin(), chosen.end(), faster);
  return chosen;
}

}  // namespace regatta::plan
