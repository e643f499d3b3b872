#include "regatta/app/report/internal/sample_run.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/model/topo/graph.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::report {
namespace {

using workload::Phase;
using workload::Strategy;

// A small generator of numbers in [-1, 1], the same on every machine.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed * 2654435761U + 88172645463325252U) {}
  double next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<double>(state_ % 20001) / 10000.0 - 1.0;
  }

 private:
  std::uint64_t state_;
};

// One step of a 1F1B pipeline in which all ranks of a stage move together.
class ToyStep {
 public:
  ToyStep(Strategy strategy, int micro_batches, double jitter, std::uint64_t seed)
      : strategy_(strategy), micro_batches_(micro_batches), jitter_(jitter), noise_(seed) {}

  // The step's spans, shifted by `start`; the ends of all ranks are the same.
  workload::Timeline run(int step, double start) {
    step_ = step;
    const std::size_t stages = as_index(strategy_.pp);
    clock_.assign(stages, start);
    forward_end_.assign(stages, {});
    backward_end_.assign(stages, {});
    const auto orders =
        pipeline::pipeline_order({.stages = strategy_.pp, .micro_batches = micro_batches_});
    REGATTA_CHECK(orders.has_value());
    std::vector<std::size_t> next(stages, 0);
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (std::size_t stage = 0; stage < stages; ++stage) {
        const std::vector<pipeline::Pass>& order = (*orders)[stage];
        while (next[stage] < order.size() && execute(stage, order[next[stage]])) {
          ++next[stage];
          is_moving = true;
        }
      }
    }
    finish();
    return std::move(spans_);
  }

 private:
  bool execute(std::size_t stage, const pipeline::Pass& pass) {
    const bool is_forward = pass.kind == pipeline::PassKind::kForward;
    const std::size_t k = as_index(pass.micro_batch);
    const bool is_source = is_forward ? stage == 0 : stage + 1 == clock_.size();
    if (!is_source) {
      const auto& ends = is_forward ? forward_end_[stage - 1] : backward_end_[stage + 1];
      if (ends.size() <= k) return false;
      wait(stage, ends[k], static_cast<int>(k));
    }
    compute(stage, is_forward, static_cast<int>(k));
    (is_forward ? forward_end_ : backward_end_)[stage].push_back(clock_[stage]);
    return true;
  }

  void wait(std::size_t stage, double ready, int k) {
    const double transfer = 0.006 * (1 + jitter_ * noise_.next());
    if (ready > clock_[stage]) add(stage, Phase::kBubble, k, ready - clock_[stage]);
    add(stage, Phase::kPpComm, k, transfer);
    background(stage, Phase::kPpComm, k, transfer);
  }

  void compute(std::size_t stage, bool is_forward, int k) {
    const double halves = (is_forward ? 0.02 : 0.04) * 8 / (strategy_.pp * strategy_.tp);
    for (int half = 0; half < 2; ++half) {
      add(stage, is_forward ? Phase::kForward : Phase::kBackward, k,
          halves * (1 + jitter_ * noise_.next()));
      if (strategy_.tp > 1)
        add(stage, Phase::kTpComm, k, 0.004 * (1 + jitter_ * std::abs(noise_.next())));
    }
  }

  void finish() {
    for (std::size_t stage = 0; stage < clock_.size(); ++stage) {
      if (strategy_.dp > 1) {
        background(stage, Phase::kDpComm, -1, 0.3);
        add(stage, Phase::kDpComm, -1, 2.6 * (1 + jitter_ * noise_.next()) / strategy_.pp);
      }
      add(stage, Phase::kOptimizer, -1, 0.012);
    }
    const double end = *std::max_element(clock_.begin(), clock_.end()) + 0.002;
    for (std::size_t stage = 0; stage < clock_.size(); ++stage)
      add(stage, Phase::kOther, -1, end - clock_[stage]);
  }

  void add(std::size_t stage, Phase phase, int k, double duration) {
    emit(stage, {.phase = phase,
                 .step = step_,
                 .micro_batch = k,
                 .start = {clock_[stage]},
                 .duration = {duration}});
    clock_[stage] += duration;
  }

  void background(std::size_t stage, Phase phase, int k, double duration) {
    emit(stage, {.phase = phase,
                 .step = step_,
                 .micro_batch = k,
                 .background = true,
                 .start = {clock_[stage] - duration},
                 .duration = {duration}});
  }

  void emit(std::size_t stage, workload::Span span) {
    const int per_stage = strategy_.tp * strategy_.dp;
    for (int i = 0; i < per_stage; ++i) {
      span.rank = {static_cast<int>(stage) * per_stage + i};
      spans_.push_back(span);
    }
  }

  Strategy strategy_;
  int micro_batches_;
  double jitter_;
  Noise noise_;
  int step_ = 0;
  std::vector<double> clock_;
  std::vector<std::vector<double>> forward_end_;
  std::vector<std::vector<double>> backward_end_;
  workload::Timeline spans_;
};

workload::PhaseTimes mean_phases(const workload::Timeline& timeline, int world_size) {
  workload::PhaseTimes phases;
  for (const workload::Span& span : timeline)
    if (!span.background) phases[span.phase] += span.duration / world_size;
  return phases;
}

std::vector<plan::LinkTraffic> sample_traffic(const topo::Graph& graph, double scale) {
  std::vector<plan::LinkTraffic> traffic;
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const auto bytes = static_cast<long long>(scale * 1e6 * static_cast<double>(1 + i % 3));
    traffic.push_back({{{static_cast<int>(i)}, true}, {bytes}});
    if (i % 4 != 3) traffic.push_back({{{static_cast<int>(i)}, false}, {bytes * 3 / 4}});
  }
  return traffic;
}

plan::SimulatedPlan sample_plan(const topo::Cluster& cluster, Strategy strategy,
                                double traffic_scale) {
  plan::SimulatedPlan plan;
  plan.strategy = strategy;
  plan.placement = topo::all_devices(cluster);
  plan.placement_name = strategy.tp > 1 ? "tp within servers, pp across leaves" : "rank order";
  const int micro_batches = 32 / (strategy.dp * strategy.micro_batch);
  plan.prediction.timeline = ToyStep(strategy, micro_batches, 0, 1).run(0, 0);
  plan.prediction.phases = mean_phases(plan.prediction.timeline, strategy.world_size());
  plan.prediction.step_time = plan.prediction.phases.total();
  plan.prediction.memory = {.weights = {13'000'000},
                            .gradients = {13'000'000},
                            .optimizer = {26'000'000},
                            .activations = {48'000'000},
                            .buffers = {9'000'000}};
  plan.prediction.memory_rank = {0};
  plan.prediction.traffic = sample_traffic(topo::build_graph(cluster), traffic_scale);
  return plan;
}

PlanRun sample_plan_run(const topo::Cluster& cluster, Strategy strategy, double traffic_scale,
                        std::uint64_t seed) {
  PlanRun run;
  run.plan = sample_plan(cluster, strategy, traffic_scale);
  const int micro_batches = 32 / (strategy.dp * strategy.micro_batch);
  double now = 3.0;
  std::vector<double> times;
  Noise noise(seed);
  for (int step = 0; step < 50; ++step) {
    const auto spans =
        ToyStep(strategy, micro_batches, 0.12, seed + static_cast<std::uint64_t>(step))
            .run(step, now);
    const double time = mean_phases(spans, strategy.world_size()).total().value;
    if (step >= 20 && step < 23)
      run.measured.timeline.insert(run.measured.timeline.end(), spans.begin(), spans.end());
    run.measured.steps.push_back(
        {step, 2.2 + 3.35 * std::exp(-step / 9.0) + 0.03 * noise.next(), {time}});
    now += time;
    if (step >= 5) times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  run.measured.step_time = {times[times.size() / 2]};
  run.measured.step_time_min = {times.front()};
  run.measured.step_time_max = {times.back()};
  run.measured.phases = mean_phases(run.measured.timeline, strategy.world_size() * 3);
  run.measured.traffic = sample_traffic(topo::build_graph(cluster), traffic_scale * 1.04);
  run.measured.tokens_per_s = 32 * 256 / run.measured.step_time.value;
  return run;
}

}  // namespace

topo::Cluster sample_cluster() {
  using namespace literals;
  topo::Cluster cluster;
  cluster.name = "lab-2x2x2";
  topo::ServerType type;
  type.name = "cpu-2";
  type.device.name = "cpu";
  type.device.kind = topo::DeviceKind::kCpu;
  type.device.cpu_share = 0.2;
  type.device_count = 2;
  type.nic_count = 1;
  type.nic_rate = 200_Mbps;
  cluster.server_types["cpu-2"] = type;
  cluster.fabric = {.tiers = 2, .rails = 1, .servers_per_leaf = 2, .spines = 2, .uplink = 100_Mbps};
  for (int i = 0; i < 4; ++i)
    cluster.servers.push_back({"s" + std::to_string(i), "cpu-2", ""});
  return cluster;
}

RunResult sample_run_result() {
  RunResult result;
  result.started_at = "2026-11-21T08:00:00Z";
  result.machine = "2 cores of an example processor, Linux 6.1";
  result.rates_source = "measured 2026-11-21 on 8 devices";
  result.cluster = sample_cluster();
  result.job.name = "gpt-small";
  result.job.model = {
      .layers = 8, .hidden = 256, .heads = 8, .ffn_hidden = 1024, .seq = 256, .vocab = 256};
  result.job.global_batch = 32;
  result.job.steps = 50;
  const std::vector<Strategy> strategies = {
      {.tp = 2, .pp = 4, .dp = 1, .micro_batch = 4}, {.tp = 2, .pp = 4, .dp = 1, .micro_batch = 2},
      {.tp = 1, .pp = 8, .dp = 1, .micro_batch = 2}, {.tp = 1, .pp = 8, .dp = 1, .micro_batch = 1},
      {.tp = 2, .pp = 2, .dp = 2, .micro_batch = 2}, {.tp = 2, .pp = 1, .dp = 4, .micro_batch = 2},
      {.tp = 1, .pp = 4, .dp = 2, .micro_batch = 2}, {.tp = 1, .pp = 1, .dp = 8, .micro_batch = 4}};
  std::uint64_t seed = 7;
  for (const Strategy& strategy : strategies) {
    const double scale = strategy.dp > 1 ? 4.0 : 1.0;
    result.sweep.push_back(sample_plan_run(result.cluster, strategy, scale, seed));
    seed += 100;
  }
  std::sort(result.sweep.begin(), result.sweep.end(), [](const PlanRun& a, const PlanRun& b) {
    return a.plan.prediction.step_time < b.plan.prediction.step_time;
  });
  result.main = result.sweep.front();
  result.compare = sample_plan_run(result.cluster, strategies.back(), 6.0, 42);
  for (const PlanRun& run : result.sweep)
    result.search.ranked.push_back(run.plan);
  result.search.rejected = {{.kind = plan::RejectionReason::kSlower,
                             .strategy = {.tp = 8},
                             .reason = "6.1x slower: tp_comm"},
                            {.kind = plan::RejectionReason::kDoesNotDivide,
                             .strategy = {.dp = 8, .micro_batch = 8},
                             .placement_name = "rank order",
                             .reason = "dp 8 * micro_batch 8 does not divide global_batch 32"},
                            {.kind = plan::RejectionReason::kSlower,
                             .strategy = {.tp = 4, .pp = 2},
                             .placement_name = "tp across servers",
                             .reason = "3.2x slower: tp_comm takes 64 % of the step"}};
  result.search.evaluated = 148;
  return result;
}

}  // namespace regatta::report
