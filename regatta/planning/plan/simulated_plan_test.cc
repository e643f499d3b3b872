#include "regatta/planning/plan/simulated_plan.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/cost/collective.h"
#include "regatta/model/topo/graph.h"
#include "regatta/planning/plan/test_plans.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;
using workload::Phase;
using workload::Strategy;

// Communication that costs nothing to speak of.
cost::Rates free_network(const topo::Cluster& cluster) {
  cost::Rates rates = cost::described_rates(cluster);
  for (cost::PathRates& path : rates.paths) {
    path.latency = {1e-15};
    path.bandwidth = path.described * 1e12;
  }
  return rates;
}

Prediction predicted(const workload::Job& job, const topo::Cluster& cluster,
                     const cost::Rates& rates, const Strategy& strategy) {
  Placement placement = topo::all_devices(cluster);
  placement.resize(static_cast<std::size_t>(strategy.world_size()));
  const auto result = predict(job, cluster, rates, strategy, placement);
  EXPECT_TRUE(result.has_value()) << result.error().message;
  return result ? *result : Prediction{};
}

// Time of a stage for one micro-batch, forward and backward, without the ends of the model.
double stage_time(const Prediction& prediction, int rank) {
  double time = 0;
  for (const workload::Span& span : prediction.timeline) {
    if (span.rank.value == rank && span.micro_batch == 0 && !span.background &&
        (span.phase == Phase::kForward || span.phase == Phase::kBackward))
      time += span.duration.value;
  }
  return time;
}

double optimizer_time(const Prediction& prediction, int rank) {
  for (const workload::Span& span : prediction.timeline) {
    if (span.rank.value == rank && span.phase == Phase::kOptimizer) return span.duration.value;
  }
  return 0;
}

TEST(PredictSimulatedPlan, GivesAStageTheTimeOfItsLayers) {
  const topo::Cluster cluster = example_cluster();
  const workload::Job job = example_job();
  const cost::Rates rates = free_network(cluster);
  const Strategy even = make_strategy(1, 4, 2, 1);
  Strategy uneven = even;
  uneven.stage_layers = {1, 3, 3, 1};
  // Two ranks a stage: those of its middle hold 2 layers, then 3.
  const double two = stage_time(predicted(job, cluster, rates, even), 2);
  const Prediction prediction = predicted(job, cluster, rates, uneven);
  EXPECT_NEAR(stage_time(prediction, 2), 1.5 * two, 1e-6 * two);
  EXPECT_NEAR(stage_time(prediction, 4), 1.5 * two, 1e-6 * two);
  EXPECT_LT(stage_time(prediction, 6), two);
}

// 1F1B without communication and with even stages lasts (m + p - 1)(F + B): the two stages of the
// ends carry embedding and head, so the model is made of blocks that dwarf them.
TEST(PredictSimulatedPlan, FollowsTheClosedFormOf1F1B) {
  workload::Job job = example_job();
  job.model.vocab = 8;
  const topo::Cluster cluster = example_cluster();
  for (const int pp : {1, 2, 4, 8}) {
    for (const int m : {1, 2, 4, 16}) {
      job.global_batch = m;
      const Prediction p =
          predicted(job, cluster, free_network(cluster), make_strategy(1, pp, 1, 1));
      // The slowest stage paces the rest; the ends differ by well under 3 %.
      double slowest = 0;
      double optimizer = 0;
      for (int rank = 0; rank < pp; ++rank) {
        slowest = std::max(slowest, stage_time(p, rank));
        optimizer = std::max(optimizer, optimizer_time(p, rank));
      }
      const double closed = (m + pp - 1) * slowest + optimizer;
      EXPECT_NEAR(p.step_time.value / closed, 1, 0.03) << "pp " << pp << " m " << m;
      EXPECT_LE(p.step_time.value, closed * (1 + 1e-9));
    }
  }
}

TEST(PredictSimulatedPlan, WaitsForTheLongestOfUnevenStages) {
  workload::Job job = example_job();
  job.model.layers = 5;  // 1, 2, 1, 1
  job.global_batch = 32;
  const topo::Cluster cluster = example_cluster();
  const Prediction p = predicted(job, cluster, free_network(cluster), make_strategy(1, 4, 1, 1));
  double slowest = 0;
  for (int rank = 0; rank < 4; ++rank)
    slowest = std::max(slowest, stage_time(p, rank));
  EXPECT_GT(p.step_time.value, 32 * slowest);
  EXPECT_LT(p.step_time.value, 35 * slowest);
}

TEST(PredictSimulatedPlan, CutsTheStepIntoPhasesThatSumToIt) {
  const workload::Job job = example_job();
  const topo::Cluster cluster = example_cluster();
  const cost::Rates rates = cost::described_rates(cluster);
  for (const auto& strategy :
       {make_strategy(1, 1, 8, 2), make_strategy(2, 2, 2, 1), make_strategy(8, 1, 1, 4),
        make_strategy(1, 8, 1, 1), make_strategy(2, 4, 1, 2)}) {
    for (const auto recompute : {workload::Recompute::kNone, workload::Recompute::kFull}) {
      Strategy one = strategy;
      one.recompute = recompute;
      const Prediction p = predicted(job, cluster, rates, one);
      EXPECT_NEAR(p.phases.total() / p.step_time, 1, 1e-9);
      EXPECT_EQ(p.phases[Phase::kRecompute].value > 0, recompute == workload::Recompute::kFull);
    }
  }
}

TEST(PredictSimulatedPlan, TilesEachRanksTimeWithSpans) {
  const topo::Cluster cluster = example_cluster();
  const Prediction p =
      predicted(example_job(), cluster, cost::described_rates(cluster), make_strategy(2, 2, 2, 1));
  std::vector<double> end(8, 0);
  for (const workload::Span& span : p.timeline) {
    if (span.background) continue;
    EXPECT_NEAR(span.start.value, end[span.rank.index()], 1e-12);
    end[span.rank.index()] = (span.start + span.duration).value;
  }
  for (const double one : end) {
    EXPECT_GT(one, 0);
    EXPECT_LE(one, p.step_time.value * (1 + 1e-12));
  }
}

// A share of a core comes in slices: tensor ranks wait for the last of them at every sum, four a
// block and micro-batch. A whole core does not.
TEST(PredictSimulatedPlan, TensorRanksWaitForTheLastSlice) {
  topo::Cluster cluster = example_cluster();
  const auto strategy = make_strategy(2, 4, 1, 2);
  const auto tp_comm = [&] {
    return predicted(example_job(), cluster, free_network(cluster), strategy)
        .phases[Phase::kTpComm]
        .value;
  };
  const double sliced = tp_comm();
  cluster.server_types.at("cpu-2").device.cpu_share = 0;
  const double whole = tp_comm();
  const double sums = 8 * 2 * 4;  // micro-batches, blocks of a stage, sums of a block
  EXPECT_GT(sliced, whole);
  EXPECT_LT(sliced - whole, (sums + 20) * cost::cpu_throttling_wait(0.15, 2).value);
}

// The wait of a replica for the last slice does not depend on the replicas built before it.
TEST(PredictSimulatedPlan, TensorRanksOfEveryReplicaWaitAlike) {
  const topo::Cluster cluster = example_cluster();
  const auto strategy = make_strategy(2, 2, 2, 1);
  const Prediction p = predicted(example_job(), cluster, free_network(cluster), strategy);
  std::vector<double> first_wait(8, 0);
  for (const workload::Span& span : p.timeline) {
    double& wait = first_wait[span.rank.index()];
    if (span.phase == Phase::kTpComm && wait == 0) wait = span.duration.value;
  }
  for (int rank = 0; rank < 8; ++rank) {
    for (const Rank peer : workload::dp_group(strategy, Rank{rank}))
      EXPECT_NEAR(first_wait[peer.index()], at(first_wait, rank), 1e-12);
  }
}

TEST(PredictSimulatedPlan, GetsFasterWithEveryLink) {
  const workload::Job job = example_job();
  std::mt19937 random(11);  // NOLINT(bugprone-random-generator-seed): the same cases every time
  const std::vector<Strategy> strategies = {make_strategy(1, 1, 8, 2), make_strategy(2, 2, 2, 1),
                                            make_strategy(4, 2, 1, 2), make_strategy(1, 4, 2, 1)};
  for (int i = 0; i < 20; ++i) {
    topo::Cluster cluster = example_cluster();
    std::uniform_real_distribution<double> megabits(20, 2000);
    cluster.fabric.uplink = {megabits(random) * 1e6 / 8};
    cluster.server_types.begin()->second.nic_rate = {megabits(random) * 1e6 / 8};
    topo::Cluster faster = cluster;
    faster.fabric.uplink = faster.fabric.uplink * 2;
    faster.server_types.begin()->second.nic_rate = cluster.server_types.at("cpu-2").nic_rate * 2;
    for (const Strategy& strategy : strategies) {
      const double before =
          predicted(job, cluster, cost::described_rates(cluster), strategy).step_time.value;
      const double after =
          predicted(job, faster, cost::described_rates(faster), strategy).step_time.value;
      EXPECT_LE(after, before * (1 + 1e-9)) << workload::to_string(strategy) << " case " << i;
    }
  }
}

// The busiest link must carry its bytes: no step is shorter than that.
TEST(PredictSimulatedPlan, NeverBeatsTheBusiestLink) {
  const workload::Job job = example_job();
  const topo::Cluster cluster = example_cluster();
  const topo::Graph graph = topo::build_graph(cluster);
  for (const auto& strategy : {make_strategy(1, 1, 8, 2), make_strategy(2, 1, 4, 1),
                               make_strategy(8, 1, 1, 1), make_strategy(1, 2, 4, 1)}) {
    const Prediction p = predicted(job, cluster, cost::described_rates(cluster), strategy);
    EXPECT_FALSE(p.traffic.empty());
    for (const LinkTraffic& traffic : p.traffic) {
      const Seconds bound = traffic.bytes / graph.links[traffic.link.link.index()].rate;
      EXPECT_GE(p.step_time.value, bound.value);
    }
  }
}

// The four servers reduce inside first, then in a ring (cost/hierarchical_layout.h).
TEST(PredictSimulatedPlan, CountsTheBytesOfAnAllReduceOverServers) {
  const workload::Job job = example_job();
  const topo::Cluster cluster = example_cluster();
  const Prediction p =
      predicted(job, cluster, cost::described_rates(cluster), make_strategy(1, 1, 8, 2));
  const double gradients = 4.0 * static_cast<double>(workload::total_parameters(job.model));
  for (const LinkTraffic& traffic : p.traffic) {
    const bool nic = traffic.link.link.value < 4;
    if (nic) {
      EXPECT_NEAR(static_cast<double>(traffic.bytes.value), 2.0 * 3 / 4 * gradients, 1e3);
    }
  }
}

TEST(PredictSimulatedPlan, RefusesWhatDoesNotFitTogether) {
  const workload::Job job = example_job();
  const topo::Cluster cluster = example_cluster();
  const cost::Rates rates = cost::described_rates(cluster);
  const Placement all = topo::all_devices(cluster);
  const auto message = [&](const Strategy& strategy, const Placement& placement) {
    const auto result = predict(job, cluster, rates, strategy, placement);
    EXPECT_FALSE(result.has_value());
    if (result) return std::string();
    EXPECT_EQ(result.error().code, Code::kInvalidInput);
    return result.error().message;
  };
  EXPECT_THAT(message(make_strategy(3, 1, 1, 1), all), HasSubstr("tp 3 does not divide heads 8"));
  EXPECT_THAT(message(make_strategy(1, 1, 4, 1), all), HasSubstr("8 devices for the 4 ranks"));
  Placement twice = all;
  twice[1] = twice[0];
  EXPECT_THAT(message(make_strategy(1, 1, 8, 1), twice), HasSubstr("device s0/0 comes twice"));
  Placement outside = all;
  outside[0] = {ServerId{9}, 0};
  EXPECT_THAT(message(make_strategy(1, 1, 8, 1), outside), HasSubstr("not in cluster lab"));
  cost::Rates empty = rates;
  empty.devices.clear();
  EXPECT_THAT(predict(job, cluster, empty, make_strategy(1, 1, 8, 1), all).error().message,
              HasSubstr("no fp32 product rate of device type cpu"));
  empty = rates;
  empty.paths.pop_back();
  EXPECT_THAT(predict(job, cluster, empty, make_strategy(1, 1, 8, 1), all).error().message,
              HasSubstr("no path \"same_group\""));
}

}  // namespace
}  // namespace regatta::plan
