#include "regatta/plan/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/plan/evaluate.h"
#include "regatta/plan/network.h"
#include "regatta/plan/placement.h"

namespace regatta::plan {
namespace {

using namespace regatta::literals;
using testing::HasSubstr;
using workload::Phase;
using workload::Strategy;

workload::Job example_job() {
  workload::Job job;
  job.name = "gpt-small";
  job.model.layers = 8;
  job.model.hidden = 384;
  job.model.heads = 8;
  job.model.ffn_hidden = 1536;
  job.model.seq = 96;
  job.model.vocab = 256;
  job.global_batch = 16;
  return job;
}

// `servers` servers of two CPU devices, two to a leaf, two spines.
topo::Cluster example_cluster(int servers = 4) {
  topo::Cluster cluster;
  cluster.name = "lab";
  topo::ServerType type;
  type.name = "cpu-2";
  type.device.name = "cpu";
  type.device.kind = topo::DeviceKind::kCpu;
  type.device.fp32_peak = 100_GFLOPS;
  type.device.memory = 2_GiB;
  type.device.memory_bandwidth = 10_GBps;
  type.device.cpu_share = 0.15;
  type.device_count = 2;
  type.intra = {topo::IntraKind::kShm, 2_GBps, 10.0_us};
  type.nic_count = 1;
  type.nic_rate = 200_Mbps;
  cluster.server_types["cpu-2"] = type;
  for (int i = 0; i < servers; ++i)
    cluster.servers.push_back({"s" + std::to_string(i), "cpu-2", ""});
  cluster.fabric.tiers = 2;
  cluster.fabric.servers_per_leaf = 2;
  cluster.fabric.spines = 2;
  cluster.fabric.uplink = 100_Mbps;
  cluster.fabric.hop_latency = 20.0_us;
  return cluster;
}

// Rates such as `regatta measure` finds in the lab: up to 14 GFLOP/s per device.
cost::Rates lab_rates(const topo::Cluster& cluster) {
  cost::Rates rates = cost::described_rates(cluster);
  cost::DeviceRates& device = rates.devices.at("cpu");
  device.matmul = {{64, 64, 64, workload::Precision::kFp32, {9e9}},
                   {128, 384, 384, workload::Precision::kFp32, {14e9}},
                   {512, 512, 512, workload::Precision::kFp32, {14e9}}};
  device.copy_bandwidth = {3.9e9};
  device.pointwise_bandwidth = {1.9e9};
  device.operator_overhead = {4e-6};
  return rates;
}

Strategy make_strategy(int tp, int pp, int dp, int micro_batch) {
  Strategy strategy;
  strategy.tp = tp;
  strategy.pp = pp;
  strategy.dp = dp;
  strategy.micro_batch = micro_batch;
  return strategy;
}

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

// 1F1B without communication and with even stages lasts (m + p - 1)(F + B): the two stages of the
// ends carry embedding and head, so the model is made of blocks that dwarf them.
TEST(Predict, FollowsTheClosedFormOf1F1B) {
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

TEST(Predict, WaitsForTheLongestOfUnevenStages) {
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

TEST(Predict, CutsTheStepIntoPhasesThatSumToIt) {
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

TEST(Predict, TilesEachRanksTimeWithSpans) {
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

TEST(Predict, GetsFasterWithEveryLink) {
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
TEST(Predict, NeverBeatsTheBusiestLink) {
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

TEST(Predict, CountsTheBytesOfARing) {
  const workload::Job job = example_job();
  const topo::Cluster cluster = example_cluster();
  const Prediction p =
      predicted(job, cluster, cost::described_rates(cluster), make_strategy(1, 1, 8, 2));
  const double gradients = 4.0 * static_cast<double>(workload::total_parameters(job.model));
  for (const LinkTraffic& traffic : p.traffic) {
    const bool nic = traffic.link.link.value < 4;
    if (nic) {
      EXPECT_NEAR(static_cast<double>(traffic.bytes.value), 2.0 * 7 / 8 * gradients, 1e3);
    }
  }
}

TEST(Predict, RefusesWhatDoesNotFitTogether) {
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

// --- search
// ----------------------------------------------------------------------------------------

TEST(SearchPlans, FindsThePlanOfBruteForceOnASmallCluster) {
  workload::Job job = example_job();
  job.global_batch = 4;
  for (const double uplink : {20.0, 100.0, 1000.0}) {
    topo::Cluster cluster = example_cluster(3);
    cluster.server_types["cpu-2"].device_count = 2;
    cluster.fabric.servers_per_leaf = 2;
    cluster.fabric.uplink = {uplink * 1e6 / 8};
    cluster.servers.resize(2);
    cluster.fabric.servers_per_leaf = 1;  // 4 devices, two leaves
    const cost::Rates rates = cost::described_rates(cluster);
    const auto result = search(job, cluster, rates);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    double best = INFINITY;
    for (const auto& [tp, pp, dp] : std::vector<std::array<int, 3>>{
             {1, 1, 4}, {1, 2, 2}, {1, 4, 1}, {2, 1, 2}, {2, 2, 1}, {4, 1, 1}}) {
      for (const int micro_batch : {1, 2, 4}) {
        if (job.global_batch % (dp * micro_batch) != 0) continue;
        Placement placement = topo::all_devices(cluster);
        do {
          const auto p =
              predict(job, cluster, rates, make_strategy(tp, pp, dp, micro_batch), placement);
          ASSERT_TRUE(p.has_value());
          best = std::min(best, p->step_time.value);
        } while (std::next_permutation(placement.begin(), placement.end()));
      }
    }
    EXPECT_NEAR(result->ranked.front().prediction.step_time.value / best, 1, 1e-6) << uplink;
  }
}

TEST(SearchPlans, RanksEveryPlanOnceFastestFirst) {
  const topo::Cluster cluster = example_cluster();
  const auto result = search(example_job(), cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value());
  EXPECT_GT(result->ranked.size(), 50U);
  std::set<std::pair<std::string, Placement>> seen;
  for (std::size_t i = 0; i < result->ranked.size(); ++i) {
    const Plan& plan = result->ranked[i];
    EXPECT_TRUE(seen.insert({workload::to_string(plan.strategy), plan.placement}).second);
    EXPECT_FALSE(plan.placement_name.empty());
    if (i > 0) {
      EXPECT_LE(result->ranked[i - 1].prediction.step_time, plan.prediction.step_time);
    }
  }
}

TEST(SearchPlans, GivesTheSameAnswerTwice) {
  const topo::Cluster cluster = example_cluster();
  const cost::Rates rates = cost::described_rates(cluster);
  const auto a = search(example_job(), cluster, rates);
  const auto b = search(example_job(), cluster, rates);
  ASSERT_TRUE(a.has_value() && b.has_value());
  ASSERT_EQ(a->ranked.size(), b->ranked.size());
  for (std::size_t i = 0; i < a->ranked.size(); ++i) {
    EXPECT_EQ(a->ranked[i].placement, b->ranked[i].placement);
    EXPECT_EQ(a->ranked[i].prediction.step_time, b->ranked[i].prediction.step_time);
  }
}

bool tp_within_servers(const Plan& plan) {
  for (int rank = 0; rank < plan.strategy.world_size(); ++rank) {
    for (const Rank peer : workload::tp_group(plan.strategy, Rank{rank})) {
      if (plan.placement[peer.index()].server !=
          plan.placement[static_cast<std::size_t>(rank)].server)
        return false;
    }
  }
  return true;
}

TEST(SearchPlans, KeepTensorParallelGroupsInServersBecauseItIsFaster) {
  const topo::Cluster cluster = example_cluster();
  const auto result = search(example_job(), cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value());
  std::set<Strategy> inside_first;
  for (const Plan& plan : result->ranked) {
    if (plan.strategy.tp != 2) continue;
    if (tp_within_servers(plan)) {
      inside_first.insert(plan.strategy);
    } else {
      EXPECT_TRUE(inside_first.contains(plan.strategy)) << workload::to_string(plan.strategy);
    }
  }
  EXPECT_FALSE(inside_first.empty());
}

TEST(SearchPlans, BeatsPureDataParallelismTwofoldOnTheExample) {
  const topo::Cluster cluster = example_cluster();
  const cost::Rates rates = lab_rates(cluster);
  const auto result = search(example_job(), cluster, rates);
  const auto pure = pure_data_parallel(example_job(), cluster, rates);
  ASSERT_TRUE(result.has_value() && pure.has_value());
  EXPECT_EQ(pure->strategy.dp, 8);
  EXPECT_EQ(pure->placement, topo::all_devices(cluster));
  EXPECT_EQ(pure->strategy.micro_batch, 2);
  const double ratio = pure->prediction.step_time / result->ranked.front().prediction.step_time;
  EXPECT_GE(ratio, 2.0);
}

TEST(SearchPlans, KeepWhatTheUserFixed) {
  workload::Job job = example_job();
  job.strategy.tp = 2;
  job.strategy.recompute = workload::Recompute::kFull;
  job.strategy.overlap = false;
  const topo::Cluster cluster = example_cluster();
  const auto result = search(job, cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value());
  for (const Plan& plan : result->ranked) {
    EXPECT_EQ(plan.strategy.tp, 2);
    EXPECT_EQ(plan.strategy.recompute, workload::Recompute::kFull);
    EXPECT_FALSE(plan.strategy.overlap);
  }
  job.placement = {"s3/1", "s3/0", "s2/1", "s2/0", "s1/1", "s1/0", "s0/1", "s0/0"};
  const auto placed = search(job, cluster, cost::described_rates(cluster));
  ASSERT_TRUE(placed.has_value());
  for (const Plan& plan : placed->ranked)
    EXPECT_EQ(plan.placement.front(), (topo::DeviceRef{ServerId{3}, 1}));
}

TEST(SearchPlans, SayWhatRuledOutTheRest) {
  workload::Job job = example_job();
  job.model.heads = 6;  // tp 4 and 8 do not divide it
  topo::Cluster cluster = example_cluster();
  cluster.server_types["cpu-2"].device.memory = 200_MiB;
  const auto result = search(job, cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value()) << result.error().message;
  std::set<Reason> kinds;
  for (const Rejected& one : result->rejected) {
    kinds.insert(one.kind);
    if (one.kind == Reason::kDoesNotDivide) {
      EXPECT_THAT(one.reason, HasSubstr("does not divide"));
    }
    if (one.kind == Reason::kMemory) {
      EXPECT_THAT(one.reason, HasSubstr("of 200 MiB per device"));
    }
    if (one.kind == Reason::kSlower) {
      EXPECT_THAT(one.reason, HasSubstr("x slower: "));
    }
  }
  EXPECT_EQ(kinds.size(), 3U);
}

TEST(SearchPlans, NameWhatCameNearestWhenNothingFits) {
  topo::Cluster cluster = example_cluster();
  cluster.server_types["cpu-2"].device.memory = 1_MiB;
  const auto small = search(example_job(), cluster, cost::described_rates(cluster));
  ASSERT_FALSE(small.has_value());
  EXPECT_EQ(small.error().code, Code::kInvalidInput);
  EXPECT_THAT(small.error().message, HasSubstr("nearest was"));
  EXPECT_THAT(small.error().message, HasSubstr("per device"));
  workload::Job job = example_job();
  job.strategy.tp = 2;
  job.strategy.pp = 3;
  cluster = example_cluster();
  const auto degrees = search(job, cluster, cost::described_rates(cluster));
  ASSERT_FALSE(degrees.has_value());
  EXPECT_EQ(degrees.error().message,
            "strategy: tp 2, pp 3 cannot fill 8 devices; the degrees must multiply to 8, so leave "
            "one out to have it chosen");
}

TEST(SweepSelection, SpreadsDifferentStrategiesOverTheRange) {
  const topo::Cluster cluster = example_cluster();
  const auto result = search(example_job(), cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value());
  const std::vector<Plan> plans = sweep_selection(*result, 8);
  ASSERT_EQ(plans.size(), 8U);
  EXPECT_EQ(plans.front().strategy, result->ranked.front().strategy);
  std::set<Strategy> strategies;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    EXPECT_TRUE(strategies.insert(plans[i].strategy).second);
    if (i > 0) {
      EXPECT_GE(plans[i].prediction.step_time, plans[i - 1].prediction.step_time);
    }
  }
  EXPECT_GT(plans.back().prediction.step_time / plans.front().prediction.step_time, 1.5);
  EXPECT_TRUE(sweep_selection(*result, 0).empty());
  EXPECT_LE(sweep_selection(*result, 100000).size(), result->ranked.size());
}

TEST(CandidatePlacements, AreDistinctPermutationsOfTheDevices) {
  const topo::Cluster cluster = example_cluster();
  const Placement all = topo::all_devices(cluster);
  for (const auto& strategy :
       {make_strategy(2, 2, 2, 1), make_strategy(1, 1, 8, 1), make_strategy(4, 2, 1, 1)}) {
    const auto placements = candidate_placements(cluster, all, strategy);
    EXPECT_EQ(placements.front(), all);
    EXPECT_EQ(std::set<Placement>(placements.begin(), placements.end()).size(), placements.size());
    for (Placement placement : placements) {
      std::sort(placement.begin(), placement.end());
      EXPECT_EQ(placement, all);
    }
  }
}

TEST(NamePlacement, SaysWhereEachAxisLies) {
  const topo::Cluster cluster = example_cluster();
  const Placement all = topo::all_devices(cluster);
  EXPECT_EQ(name_placement(cluster, make_strategy(2, 2, 2, 1), all),
            "tp within servers, dp within leaves, pp across leaves");
  EXPECT_EQ(name_placement(cluster, make_strategy(1, 8, 1, 1), all),
            "pp across leaves at 1 of 7 hops");
  EXPECT_EQ(name_placement(cluster, make_strategy(1, 1, 8, 1), all),
            "dp across leaves at 2 of 8 hops");
  EXPECT_EQ(name_placement(cluster, make_strategy(1, 1, 1, 1), {all.front()}), "one device");
}

TEST(ParsePlacement, NamesTheDeviceThatIsWrong) {
  const topo::Cluster cluster = example_cluster();
  EXPECT_EQ(parse_placement({"s0/1", "s3/0"}, cluster)->back(), (topo::DeviceRef{ServerId{3}, 0}));
  EXPECT_EQ(parse_placement({"s9/0"}, cluster).error().message,
            "placement: cluster lab has no device s9/0; write it as s0/0");
  EXPECT_EQ(parse_placement({"s0/1", "s0/1"}, cluster).error().message,
            "placement: device s0/1 comes twice; give each rank its own");
}

}  // namespace
}  // namespace regatta::plan
