#include "regatta/planning/plan/heterogeneous_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/search/heterogeneous_split.h"
#include "regatta/planning/plan/internal/search/server_orders.h"
#include "regatta/planning/plan/internal/search/strategy_space.h"

namespace regatta::plan {
namespace {

using workload::Strategy;

bool is_faster_plan(const HeterogeneousPlan& a, const HeterogeneousPlan& b) {
  const Seconds left = a.plan.estimate.step.total();
  const Seconds right = b.plan.estimate.step.total();
  if (left != right) return left < right;
  return std::tie(a.plan.strategy, a.servers) < std::tie(b.plan.strategy, b.servers);
}

HeterogeneousPlan plan_of(const HeterogeneousJob& job, const HeterogeneousSplit& split,
                          const ServerOrder& servers) {
  const HeterogeneousEstimate estimate = estimate_heterogeneous(job, split);
  return {.plan = {.strategy = job.strategy,
                   .estimate = {.step = estimate.step,
                                .memory = estimate.worst().memory,
                                .worst_stage = estimate.worst_stage}},
          .split = split,
          .servers = servers,
          .capacity = estimate.worst().capacity};
}

// Degrees, a micro-batch and what every rank does for it, without order of servers and sharing.
struct Candidate {
  Strategy strategy;
  double least = 0;  // seconds: what no split goes below
};

class HeterogeneousPlanSearch {
 public:
  HeterogeneousPlanSearch(const HeterogeneousProblem& problem, int top)
      : problem_(problem),
        top_(static_cast<std::size_t>(std::max(1, top))),
        devices_(static_cast<int>(all_devices(problem.cluster).size())) {
    for (const ServerOrder& order : type_orders(problem.cluster))
      orders_.emplace_back(order, reordered(problem.cluster, order));
  }

  Result<HeterogeneousSearchResult> run() {
    for (const Candidate& candidate : candidates()) {
      if (candidate.least > limit()) break;  // in order of `least`: all that follow, too
      REGATTA_TRY_DO(look_at(candidate));
    }
    for (HeterogeneousPlan& plan : result_.ranked)
      improve(plan);
    std::sort(result_.ranked.begin(), result_.ranked.end(), is_faster_plan);
    return std::move(result_);
  }

 private:
  using Order = std::pair<ServerOrder, topo::Cluster>;

  double limit() const {
    return result_.ranked.size() < top_ ? std::numeric_limits<double>::infinity()
                                        : result_.ranked.back().plan.estimate.step.total().value;
  }

  std::vector<Candidate> candidates() {
    workload::StrategyRequest request = problem_.request;
    request.cp = 1;
    request.ep = 1;
    request.etp = 0;
    const StrategySpaceInput space{.model = problem_.model,
                                   .global_batch = problem_.global_batch,
                                   .request = request,
                                   .devices = devices_};
    std::vector<Candidate> all;
    for (const Strategy& work : work_strategies(space))
      if (work.tp <= largest_server()) with_stages(work, all);
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.least, a.strategy) < std::tie(b.least, b.strategy);
    });
    return all;
  }

  int largest_server() const {
    int most = 1;
    for (const auto& [name, type] : problem_.cluster.server_types)
      most = std::max(most, type.device_count);
    return most;
  }

  void with_stages(const Strategy& work, std::vector<Candidate>& all) {
    const int rest = devices_ / work.tp;
    const int count = problem_.global_batch / work.micro_batch;
    const Rates rates = rates_of(work);
    for (int pp = 1; pp <= std::min(rest, problem_.model.layers); ++pp) {
      const int dp = rest / pp;
      const auto& request = problem_.request;
      if (rest % pp != 0 || dp > count || (request.pp && *request.pp != pp) ||
          (request.dp && *request.dp != dp))
        continue;
      Candidate candidate{.strategy = work};
      candidate.strategy.pp = pp;
      candidate.strategy.dp = dp;
      const double most = std::ceil(static_cast<double>(count) / dp);
      const double alone = rates.fastest / (1 - std::pow(1 - 1 / most, pp));
      candidate.least = std::max(count / rates.together, alone);
      all.push_back(candidate);
    }
  }

  // How many micro-batches a second all tensor groups together can work on, and how long the
  // fastest would take for one.
  struct Rates {
    double together = 0;
    double fastest = std::numeric_limits<double>::infinity();
  };

  Rates rates_of(const Strategy& work) const {
    const workload::BlockCounts all = all_blocks(problem_.model);
    std::map<std::string, double> times;
    Rates rates;
    for (const topo::Server& server : problem_.cluster.servers) {
      const topo::ServerType& type = problem_.cluster.server_types.at(server.type);
      auto& time = times[server.type];
      if (time == 0) {
        const EstimateInput input{.model = problem_.model,
                                  .strategy = work,
                                  .global_batch = problem_.global_batch,
                                  .precision = problem_.precision,
                                  .server = type,
                                  .stack = problem_.stack};
        const MicroBatchWork measured = micro_batch_work(input, machine_model(input));
        for (int kind = 0; kind < workload::kBlockKinds; ++kind)
          time += at(measured.blocks, kind).time.total().value * all[kind];
      }
      rates.together += type.device_count / (work.tp * time);
      rates.fastest = std::min(rates.fastest, time);
    }
    return rates;
  }

  Status look_at(const Candidate& candidate) {
    for (const auto& [servers, cluster] : orders_)
      REGATTA_TRY_DO(look_at(candidate, servers, cluster));
    const ServerOrder spread = spread_order(problem_.cluster, candidate.strategy.pp);
    if (!spread.empty())
      REGATTA_TRY_DO(look_at(candidate, spread, reordered(problem_.cluster, spread)));
    return {};
  }

  HeterogeneousInput input_of(const Strategy& strategy, const topo::Cluster& cluster) const {
    return {.model = problem_.model,
            .strategy = strategy,
            .global_batch = problem_.global_batch,
            .precision = problem_.precision,
            .cluster = cluster,
            .stack = problem_.stack};
  }

  Status look_at(const Candidate& candidate, const ServerOrder& servers,
                 const topo::Cluster& cluster) {
    Strategy strategy = candidate.strategy;
    strategy.schedule = problem_.request.schedule.value_or(strategy.schedule);
    strategy.offload = problem_.request.offload.value_or(strategy.offload);
    strategy.overlap = problem_.request.overlap.value_or(true);
    strategy.compression =
        problem_.request.compression.value_or(workload::GradientCompression::kNone);
    strategy.zero = problem_.request.zero.value_or(0);
    REGATTA_TRY(job, heterogeneous_job(input_of(strategy, cluster)));
    for (const int zero : {0, 1, 2}) {
      if (problem_.request.zero && *problem_.request.zero != zero) continue;
      if (!problem_.request.zero && zero > 0 && strategy.dp == 1) break;
      job.strategy.zero = zero;
      if (!workload::admits(problem_.request.constraints, job.strategy)) continue;
      ++result_.points;
      const auto split = best_split(job, false);
      ++result_.evaluated;
      if (split) offer(plan_of(job, *split, servers));
    }
    return {};
  }

  void offer(HeterogeneousPlan plan) {
    if (plan.plan.estimate.step.total().value > limit()) return;
    auto& ranked = result_.ranked;
    const auto at = std::upper_bound(ranked.begin(), ranked.end(), plan, is_faster_plan);
    ranked.insert(at, std::move(plan));
    if (ranked.size() > top_) ranked.pop_back();
  }

  void improve(HeterogeneousPlan& plan) const {
    const topo::Cluster cluster = reordered(problem_.cluster, plan.servers);
    const auto job = heterogeneous_job(input_of(plan.plan.strategy, cluster));
    const auto split = job ? best_split(*job, true) : std::nullopt;
    if (split) plan = std::min(plan, plan_of(*job, *split, plan.servers), is_faster_plan);
  }

  const HeterogeneousProblem& problem_;
  std::size_t top_;
  int devices_;
  std::vector<Order> orders_;
  HeterogeneousSearchResult result_;
};

}  // namespace

topo::Cluster reordered(const topo::Cluster& cluster, const std::vector<ServerId>& servers) {
  topo::Cluster other = cluster;
  for (std::size_t i = 0; i < servers.size(); ++i)
    other.servers[i] = cluster.servers[servers[i].index()];
  return other;
}

Result<HeterogeneousSearchResult> search_heterogeneous_plans(const HeterogeneousProblem& problem,
                                                             int top) {
  if (problem.request.stage_layers) {
    return Error{Code::kUnsupported,
                 fmt::format("cluster {}: stage_layers is for servers of one type; leave it out, "
                             "and every stage gets what its servers can do",
                             problem.cluster.name)};
  }
  if (is_frozen(problem.model)) {
    return Error{Code::kUnsupported,
                 fmt::format("cluster {}: servers of several types train all weights; set tuning "
                             "to {{kind: full}}, or use servers of one type",
                             problem.cluster.name)};
  }
  if (!are_kinds_in_order(problem.model) || problem.model.mtp_layers > 0) {
    return Error{Code::kUnsupported,
                 fmt::format("cluster {}: servers of several types take models whose layers are "
                             "alike; leave windows, layer_pattern, expert_every and mtp_layers "
                             "out, or use servers of one type",
                             problem.cluster.name)};
  }
  REGATTA_TRY(result, HeterogeneousPlanSearch(problem, top).run());
  if (!result.ranked.empty()) return result;
  const auto devices = all_devices(problem.cluster).size();
  if (result.points == 0) {
    return Error{Code::kInvalidInput,
                 fmt::format("cluster {}: no strategy of its {} devices divides the job: {} heads, "
                             "{} layers, batches of {}; free a degree of the strategy, or use "
                             "another number of servers",
                             problem.cluster.name, devices, problem.model.heads,
                             problem.model.layers, problem.global_batch)};
  }
  return Error{Code::kInvalidInput,
               fmt::format("cluster {}: none of {} strategies fits its {} devices; use more "
                           "servers, devices with more memory, or free zero and recompute",
                           problem.cluster.name, result.points, devices)};
}

}  // namespace regatta::plan
