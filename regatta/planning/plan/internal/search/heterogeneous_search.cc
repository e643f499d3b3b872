#include "regatta/planning/plan/internal/search/heterogeneous_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_job.h"
#include "regatta/planning/plan/internal/search/best_plans.h"
#include "regatta/planning/plan/internal/search/heterogeneous_split.h"
#include "regatta/planning/plan/internal/search/plan_families.h"
#include "regatta/planning/plan/internal/search/server_orders.h"
#include "regatta/planning/plan/internal/search/spread.h"
#include "regatta/planning/plan/internal/search/strategy_space.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::plan {
namespace {

using workload::Strategy;

HeterogeneousInput heterogeneous_input(const PlanningProblem& problem, const Strategy& strategy,
                                       const topo::Cluster& cluster) {
  return {.model = problem.model,
          .strategy = strategy,
          .global_batch = problem.global_batch,
          .precision = problem.precision,
          .cluster = cluster,
          .stack = problem.stack,
          .even_replicas = problem.even_replicas};
}

// An order of servers: as ids of the problem's cluster, and as a cluster of its own.
struct OrderedServers {
  std::vector<ServerId> servers;
  topo::Cluster cluster;
};

// The servers that a problem uses, in the orders that are tried.
class ServerOrders {
 public:
  explicit ServerOrders(const PlanningProblem& problem)
      : problem_(problem), used_(reordered(*problem.cluster, problem.servers)) {
    for (const ServerOrder& order : type_orders(used_))
      together_.push_back(ordered(order));
  }

  const topo::Cluster& used() const { return used_; }

  // Calls `look` for each order for so many stages.
  template <typename Look>
  Status each(int stages, const Look& look) const {
    for (const OrderedServers& order : together_)
      REGATTA_TRY_DO(look(order));
    const ServerOrder spread = spread_order(used_, stages);
    if (!spread.empty()) REGATTA_TRY_DO(look(ordered(spread)));
    return {};
  }

 private:
  OrderedServers ordered(const ServerOrder& order) const {
    OrderedServers all;
    for (const ServerId server : order)
      all.servers.push_back(problem_.servers[server.index()]);
    all.cluster = reordered(*problem_.cluster, all.servers);
    return all;
  }

  const PlanningProblem& problem_;
  topo::Cluster used_;
  std::vector<OrderedServers> together_;
};

Plan plan_of(const HeterogeneousJob& job, const HeterogeneousSplit& split,
             const std::vector<ServerId>& servers) {
  const HeterogeneousEstimate estimate = estimate_heterogeneous(job, split);
  Plan plan{.strategy = job.strategy,
            .estimate = {.step = estimate.step,
                         .memory = estimate.worst().memory,
                         .worst_stage = estimate.worst_stage},
            .micro_batches = split.micro_batches,
            .servers = servers,
            .capacity = estimate.worst().capacity};
  plan.strategy.stage_layers = split.layers;
  Strategy even = job.strategy;
  even.stage_layers.clear();
  const auto is_even = [&](int stage) {
    return at(split.layers, stage) == workload::stage_layers(job.model, even, stage).count;
  };
  int stage = 0;
  while (stage < even.pp && is_even(stage))
    ++stage;
  if (stage == even.pp) plan.strategy.stage_layers.clear();
  return plan;
}

HeterogeneousSplit split_of(const HeterogeneousJob& job, const Plan& plan) {
  return {.layers = even_split(job).layers, .micro_batches = plan.micro_batches};
}

// So many families get a thorough split, however few are asked for: it may change their order.
constexpr std::size_t kImproved = 16;

// Degrees, a micro-batch and what every rank does for it, without order of servers and sharing.
struct Candidate {
  Strategy strategy;
  double least = 0;  // seconds: what no split goes below
};

class HeterogeneousSearch {
 public:
  HeterogeneousSearch(const PlanningProblem& problem, SearchMode mode, int top, int threads)
      : problem_(problem),
        is_pruned_(mode == SearchMode::kPruned),
        wanted_(static_cast<std::size_t>(std::max(1, top))),
        top_(std::max(wanted_, kImproved)),
        threads_(std::max(1, threads)),
        orders_(problem),
        best_(problem, !is_pruned_) {}

  Result<PlanSearchResult> run() {
    const std::vector<Candidate> all = candidates();
    std::vector<Status> statuses(static_cast<std::size_t>(threads_));
    spread(all.size(), threads_, [&](std::size_t i, int thread) {
      Status& status = at(statuses, thread);
      if (!status || (is_pruned_ && all[i].least > best_.limit(top_))) return;
      status = orders_.each(all[i].strategy.pp,
                            [&](const OrderedServers& order) { return look_at(all[i], order); });
    });
    for (const Status& status : statuses)
      REGATTA_TRY_DO(status);
    PlanSearchResult result = best_.result(top_);
    std::vector<FamilyBest> families(result.ranked.size());
    for (std::size_t i = 0; i < families.size(); ++i) {
      improve(result.ranked[i]);
      families[i].offer(result.ranked[i]);
    }
    result.ranked = ranked_families(std::move(families), wanted_);
    result.points = points_;
    return result;
  }

 private:
  // The best plan of each family, and the counts; for all threads.
  class Best {
   public:
    Best(const PlanningProblem& problem, bool keeps_all)
        : problem_(problem), tally_(0, keeps_all) {}

    // Seconds: a slower plan is not among the `top` families.
    double limit(std::size_t top) const {
      const MutexLock lock(mutex_);
      if (fastest_.size() < top) return std::numeric_limits<double>::infinity();
      std::vector<double> times;
      for (const auto& [family, plan] : fastest_)
        times.push_back(plan.fastest());
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(top - 1),
                       times.end());
      return times[top - 1] * (1 + kSameTime);
    }

    void offer(const Plan& plan) {
      const bool fits = memory_fit(problem_, plan) == MemoryFit::kFits;
      const MutexLock lock(mutex_);
      tally_.count(plan, fits);
      if (fits) fastest_[family_of(plan.strategy)].offer(plan);
    }

    PlanSearchResult result(std::size_t top) const {
      const MutexLock lock(mutex_);
      PlanSearchResult result = tally_.result(top);
      std::vector<FamilyBest> families;
      for (const auto& [family, plan] : fastest_)
        families.push_back(plan);
      result.ranked = ranked_families(std::move(families), top);
      return result;
    }

   private:
    const PlanningProblem& problem_;
    mutable Mutex mutex_;
    BestPlans tally_ REGATTA_GUARDED_BY(mutex_);
    std::map<PlanFamily, FamilyBest> fastest_ REGATTA_GUARDED_BY(mutex_);
  };

  std::vector<Candidate> candidates() {
    const StrategySpaceInput space = space_of(problem_.request, problem_.global_batch);
    std::vector<Candidate> all;
    for (const Strategy& work : work_strategies(space))
      if (work.tp <= largest_server()) with_stages(work, all);
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.least, a.strategy) < std::tie(b.least, b.strategy);
    });
    return all;
  }

  StrategySpaceInput space_of(const workload::StrategyRequest& request, int global_batch) const {
    return {.model = problem_.model,
            .global_batch = global_batch,
            .request = request,
            .devices = problem_.devices,
            .server_devices = largest_server(),
            .every_form = problem_.every_form};
  }

  int largest_server() const {
    int most = 1;
    for (const topo::Server& server : orders_.used().servers)
      most = std::max(most, orders_.used().server_types.at(server.type).device_count);
    return most;
  }

  void with_stages(const Strategy& work, std::vector<Candidate>& all) {
    const auto& request = problem_.request;
    const int alone = work.tp * work.cp;
    if (problem_.devices % alone != 0) return;
    const int rest = problem_.devices / alone;
    const int count = problem_.global_batch / work.micro_batch;
    std::optional<Rates> rates;
    for (int pp = 1; pp <= std::min(rest, problem_.model.layers); ++pp) {
      const int dp = rest / pp;
      if (rest % pp != 0 || dp > count || (request.pp && *request.pp != pp) ||
          (request.dp && *request.dp != dp) ||
          (request.stage_layers && static_cast<int>(request.stage_layers->size()) != pp))
        continue;
      Candidate candidate{.strategy = work};
      candidate.strategy.pp = pp;
      candidate.strategy.dp = dp;
      const int samples = dp * work.micro_batch;
      if (!workload::micro_batches(problem_.model, candidate.strategy, samples)) continue;
      if (!rates) rates = rates_of(work);
      const double most = std::ceil(static_cast<double>(count) / dp);
      const double one = rates->fastest / (1 - std::pow(1 - 1 / most, pp));
      candidate.least = std::max(count / rates->together, one);
      all.push_back(candidate);
    }
  }

  // How many micro-batches a second all groups of ranks together can work on, and how long the
  // fastest would take for one.
  struct Rates {
    double together = 0;
    double fastest = std::numeric_limits<double>::infinity();
  };

  Rates rates_of(const Strategy& work) const {
    const workload::BlockCounts all = all_blocks(problem_.model);
    std::map<std::string, double> times;
    Rates rates;
    for (const topo::Server& server : orders_.used().servers) {
      const topo::ServerType& type = orders_.used().server_types.at(server.type);
      auto& time = times[server.type];
      if (time == 0) {
        const EstimateInput input{.model = problem_.model,
                                  .strategy = work,
                                  .global_batch = problem_.global_batch,
                                  .precision = problem_.precision,
                                  .server = type,
                                  .stack = problem_.stack};
        const MicroBatchWork measured = micro_batch_work(input, machine_model(input));
        for (int kind = 0; kind < workload::kBlockKinds; ++kind) {
          const StepBreakdown& block = at(measured.blocks, kind).time;
          time += (block.total() - block.ep_comm).value * all[kind];
        }
      }
      rates.together += type.device_count / (work.tp * work.cp * time);
      rates.fastest = std::min(rates.fastest, time);
    }
    return rates;
  }

  // The ways to share weights and to overlap of a candidate: those of equal servers with as many
  // micro-batches for every replica. With the same offload, those that share more come first.
  std::vector<Strategy> completions(const Candidate& candidate) const {
    workload::StrategyRequest request = problem_.request;
    request.overlap = request.overlap.value_or(true);
    request.schedule = request.schedule.value_or(workload::PipelineSchedule::k1F1B);
    const Strategy& staged = candidate.strategy;
    const int count = problem_.global_batch / staged.micro_batch;
    const int each = std::max(1, count / staged.dp);
    Strategy with_layers = staged;
    if (request.stage_layers) with_layers.stage_layers = *request.stage_layers;
    std::vector<Strategy> all;
    add_completions(space_of(request, each * staged.dp * staged.micro_batch), with_layers, all);
    std::stable_sort(all.begin(), all.end(), [](const Strategy& a, const Strategy& b) {
      return std::pair(a.offload, -a.zero) < std::pair(b.offload, -b.zero);
    });
    return all;
  }

  Status look_at(const Candidate& candidate, const OrderedServers& order) {
    const std::vector<Strategy> strategies = completions(candidate);
    if (strategies.empty()) return {};
    REGATTA_TRY(
        job, heterogeneous_job(heterogeneous_input(problem_, strategies.front(), order.cluster)));
    if (problem_.even_replicas && job.micro_batches % job.strategy.dp != 0) return {};
    points_ += static_cast<long long>(strategies.size());
    std::optional<HeterogeneousSplit> widest;  // the best where replicas share most
    for (const Strategy& strategy : strategies) {
      const bool is_other = strategy.offload != job.strategy.offload;
      job.strategy = strategy;
      // The best of a problem is the best of a narrower one that allows it.
      auto split =
          widest && !is_other && fits_devices(job, *widest) ? widest : best_split(job, false);
      if (!widest || is_other) widest = split;
      const Plan plan = plan_of(job, split.value_or(even_split(job)), order.servers);
      if (!problem_.accepts || problem_.accepts(plan.strategy)) best_.offer(plan);
      const StepBreakdown& step = plan.estimate.step;
      const Seconds pipeline = step.total() - step.dp_comm - step.optimizer - step.offload;
      if (is_pruned_ && split && pipeline.value > best_.limit(top_)) return {};
    }
    return {};
  }

  void improve(Plan& plan) const {
    const topo::Cluster cluster = reordered(*problem_.cluster, plan.servers);
    Strategy strategy = plan.strategy;
    if (!problem_.request.stage_layers) strategy.stage_layers.clear();
    const auto job = heterogeneous_job(heterogeneous_input(problem_, strategy, cluster));
    const auto split = job ? best_split(*job, true) : std::nullopt;
    if (!split) return;
    Plan other = plan_of(*job, *split, plan.servers);
    if (problem_.accepts && !problem_.accepts(other.strategy)) return;
    if (other.estimate.step.total() < plan.estimate.step.total()) plan = std::move(other);
  }

  const PlanningProblem& problem_;
  bool is_pruned_;
  std::size_t wanted_;
  std::size_t top_;  // families that are kept and improved
  int threads_;
  ServerOrders orders_;
  Best best_;
  std::atomic<long long> points_ = 0;
};

}  // namespace

topo::Cluster reordered(const topo::Cluster& cluster, const std::vector<ServerId>& servers) {
  topo::Cluster other = cluster;
  other.servers.clear();
  for (const ServerId server : servers)
    other.servers.push_back(cluster.servers[server.index()]);
  return other;
}

Result<PlanSearchResult> search_heterogeneous_servers(const PlanningProblem& problem,
                                                      SearchMode mode, int top, int threads) {
  return HeterogeneousSearch(problem, mode, top, threads).run();
}

Result<Plan> exact_heterogeneous_plan(const PlanningProblem& problem, const Strategy& strategy) {
  std::optional<Plan> best;
  const Status looked =
      ServerOrders(problem).each(strategy.pp, [&](const OrderedServers& order) -> Status {
        REGATTA_TRY(job, heterogeneous_job(heterogeneous_input(problem, strategy, order.cluster)));
        const auto split = best_split(job, true);
        const Plan plan = plan_of(job, split.value_or(even_split(job)), order.servers);
        const auto rank = [&](const Plan& one) {
          return std::pair(memory_fit(problem, one), one.estimate.step.total());
        };
        if (!best || rank(plan) < rank(*best)) best = plan;
        return {};
      });
  if (!looked) return looked.error();
  return *std::move(best);
}

Result<Plan> plan_in_rank_order(const PlanningProblem& problem, const Strategy& strategy,
                                const std::vector<int>& layers) {
  const topo::Cluster cluster = reordered(*problem.cluster, problem.servers);
  const HeterogeneousInput input = heterogeneous_input(problem, strategy, cluster);
  HeterogeneousSplit split = even_split(input);
  if (!layers.empty()) split.layers = layers;
  REGATTA_TRY(job, heterogeneous_job(input));
  REGATTA_TRY_DO(check_split(job, split));
  return plan_of(job, split, problem.servers);
}

Result<HeterogeneousEstimate> estimate_again(const PlanningProblem& problem, const Plan& plan,
                                             const std::function<void(MachineModel&)>& change) {
  const topo::Cluster cluster = reordered(*problem.cluster, plan.servers);
  HeterogeneousInput input = heterogeneous_input(problem, plan.strategy, cluster);
  input.change = change;
  REGATTA_TRY(job, heterogeneous_job(input));
  return estimate_heterogeneous(job, split_of(job, plan));
}

Result<StageTimeline> heterogeneous_plan_timeline(const PlanningProblem& problem,
                                                  const Plan& plan) {
  const topo::Cluster cluster = reordered(*problem.cluster, plan.servers);
  REGATTA_TRY(job, heterogeneous_job(heterogeneous_input(problem, plan.strategy, cluster)));
  return heterogeneous_timeline(job, split_of(job, plan));
}

}  // namespace regatta::plan
