#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/simulated_plan.h"
#include "regatta/planning/plan/test_plans.h"

namespace regatta::plan {
namespace {

using namespace regatta::literals;
using testing::HasSubstr;
using testing::MatchesRegex;
using workload::Strategy;

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

// The shortest predicted step of a strategy over every order of the cluster's devices.
double best_of_all_placements(const workload::Job& job, const topo::Cluster& cluster,
                              const workload::Strategy& strategy) {
  const cost::Rates rates = cost::described_rates(cluster);
  Placement placement = topo::all_devices(cluster);
  double best = INFINITY;
  do {
    const auto predicted = predict(job, cluster, rates, strategy, placement);
    EXPECT_TRUE(predicted.has_value());
    if (predicted) best = std::min(best, predicted->step_time.value);
  } while (std::next_permutation(placement.begin(), placement.end()));
  return best;
}

TEST(SearchSimulatedPlans, FindsThePlanOfBruteForceOnASmallCluster) {
  workload::Job job = example_job();
  job.global_batch = 4;
  for (const double uplink : {20.0, 100.0, 1000.0}) {
    topo::Cluster cluster = example_cluster(2);  // 4 devices
    cluster.fabric.servers_per_leaf = 1;         // two leaves
    cluster.fabric.uplink = {uplink * 1e6 / 8};
    const auto result = search_simulated_plans(job, cluster, cost::described_rates(cluster));
    ASSERT_TRUE(result.has_value()) << result.error().message;
    double best = INFINITY;
    for (const auto& [tp, pp, dp] : std::vector<std::array<int, 3>>{
             {1, 1, 4}, {1, 2, 2}, {1, 4, 1}, {2, 1, 2}, {2, 2, 1}, {4, 1, 1}}) {
      for (const int micro_batch : {1, 2, 4}) {
        if (job.global_batch % (dp * micro_batch) != 0) continue;
        const auto strategy = make_strategy(tp, pp, dp, micro_batch);
        best = std::min(best, best_of_all_placements(job, cluster, strategy));
      }
    }
    EXPECT_NEAR(result->ranked.front().prediction.step_time.value / best, 1, 1e-6) << uplink;
  }
}

TEST(SearchSimulatedPlans, RanksEveryPlanOnceFastestFirst) {
  const topo::Cluster cluster = example_cluster();
  const auto result =
      search_simulated_plans(example_job(), cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value());
  EXPECT_GT(result->ranked.size(), 50U);
  std::set<std::pair<std::string, Placement>> seen;
  for (std::size_t i = 0; i < result->ranked.size(); ++i) {
    const SimulatedPlan& plan = result->ranked[i];
    EXPECT_TRUE(seen.insert({workload::to_string(plan.strategy), plan.placement}).second);
    EXPECT_FALSE(plan.placement_name.empty());
    if (i > 0) {
      EXPECT_LE(result->ranked[i - 1].prediction.step_time, plan.prediction.step_time);
    }
  }
}

TEST(SearchSimulatedPlans, GivesTheSameAnswerTwice) {
  const topo::Cluster cluster = example_cluster();
  const cost::Rates rates = cost::described_rates(cluster);
  const auto a = search_simulated_plans(example_job(), cluster, rates);
  const auto b = search_simulated_plans(example_job(), cluster, rates);
  ASSERT_TRUE(a.has_value() && b.has_value());
  ASSERT_EQ(a->ranked.size(), b->ranked.size());
  for (std::size_t i = 0; i < a->ranked.size(); ++i) {
    EXPECT_EQ(a->ranked[i].placement, b->ranked[i].placement);
    EXPECT_EQ(a->ranked[i].prediction.step_time, b->ranked[i].prediction.step_time);
  }
}

bool tp_within_servers(const SimulatedPlan& plan) {
  for (int rank = 0; rank < plan.strategy.world_size(); ++rank) {
    for (const Rank peer : workload::tp_group(plan.strategy, Rank{rank})) {
      if (plan.placement[peer.index()].server != at(plan.placement, rank).server) return false;
    }
  }
  return true;
}

TEST(SearchSimulatedPlans, KeepTensorParallelGroupsInServersBecauseItIsFaster) {
  const topo::Cluster cluster = example_cluster();
  const auto result =
      search_simulated_plans(example_job(), cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value());
  std::set<Strategy> inside_first;
  for (const SimulatedPlan& plan : result->ranked) {
    if (plan.strategy.tp != 2) continue;
    if (tp_within_servers(plan)) {
      inside_first.insert(plan.strategy);
    } else {
      EXPECT_TRUE(inside_first.contains(plan.strategy)) << workload::to_string(plan.strategy);
    }
  }
  EXPECT_FALSE(inside_first.empty());
}

TEST(SearchSimulatedPlans, BeatsPureDataParallelismTwofoldOnTheExample) {
  const topo::Cluster cluster = example_cluster();
  const cost::Rates rates = lab_rates(cluster);
  const auto result = search_simulated_plans(example_job(), cluster, rates);
  const auto pure = pure_data_parallel(example_job(), cluster, rates);
  ASSERT_TRUE(result.has_value() && pure.has_value());
  EXPECT_EQ(pure->strategy.dp, 8);
  EXPECT_EQ(pure->placement, topo::all_devices(cluster));
  EXPECT_EQ(pure->strategy.micro_batch, 2);
  const double ratio = pure->prediction.step_time / result->ranked.front().prediction.step_time;
  EXPECT_GE(ratio, 2.0);
}

TEST(SearchSimulatedPlans, KeepWhatTheUserFixed) {
  workload::Job job = example_job();
  job.strategy.tp = 2;
  job.strategy.recompute = workload::Recompute::kFull;
  job.strategy.overlap = false;
  const topo::Cluster cluster = example_cluster();
  const auto result = search_simulated_plans(job, cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value());
  for (const SimulatedPlan& plan : result->ranked) {
    EXPECT_EQ(plan.strategy.tp, 2);
    EXPECT_EQ(plan.strategy.recompute, workload::Recompute::kFull);
    EXPECT_FALSE(plan.strategy.overlap);
  }
  job.placement = {"s3/1", "s3/0", "s2/1", "s2/0", "s1/1", "s1/0", "s0/1", "s0/0"};
  const auto placed = search_simulated_plans(job, cluster, cost::described_rates(cluster));
  ASSERT_TRUE(placed.has_value());
  for (const SimulatedPlan& plan : placed->ranked)
    EXPECT_EQ(plan.placement.front(), (topo::DeviceRef{ServerId{3}, 1}));
}

TEST(SearchSimulatedPlans, SayWhatRuledOutTheRest) {
  workload::Job job = example_job();
  job.model.heads = 6;  // tp 4 and 8 do not divide it
  topo::Cluster cluster = example_cluster();
  cluster.server_types["cpu-2"].device.memory = 200_MiB;
  const auto result = search_simulated_plans(job, cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value()) << result.error().message;
  std::set<RejectionReason> kinds;
  for (const RejectedStrategy& one : result->rejected) {
    kinds.insert(one.kind);
    if (one.kind == RejectionReason::kDoesNotDivide) {
      EXPECT_THAT(one.reason, HasSubstr("does not divide"));
    }
    if (one.kind == RejectionReason::kMemory) {
      EXPECT_THAT(one.reason, HasSubstr("of 200 MiB per device"));
    }
    if (one.kind == RejectionReason::kSlower) {
      EXPECT_THAT(one.reason, HasSubstr("x slower: "));
    }
  }
  EXPECT_EQ(kinds.size(), 3U);
}

TEST(SearchSimulatedPlans, NameWhatCameNearestWhenNothingFits) {
  topo::Cluster cluster = example_cluster();
  cluster.server_types["cpu-2"].device.memory = 1_MiB;
  const auto small = search_simulated_plans(example_job(), cluster, cost::described_rates(cluster));
  ASSERT_FALSE(small.has_value());
  EXPECT_EQ(small.error().code, Code::kInvalidInput);
  EXPECT_THAT(small.error().message, HasSubstr("nearest was"));
  EXPECT_THAT(small.error().message, HasSubstr("per device"));
  workload::Job job = example_job();
  job.strategy.tp = 2;
  job.strategy.pp = 3;
  cluster = example_cluster();
  const auto degrees = search_simulated_plans(job, cluster, cost::described_rates(cluster));
  ASSERT_FALSE(degrees.has_value());
  EXPECT_EQ(degrees.error().message,
            "strategy: tp 2, pp 3 cannot fill 8 devices; the degrees must multiply to 8, so leave "
            "one out to have it chosen");
  job.strategy.pp.reset();
  job.strategy.tp = 3;
  EXPECT_EQ(search_simulated_plans(job, cluster, cost::described_rates(cluster)).error().message,
            "strategy: tp 3 cannot fill 8 devices; choose a divisor of 8");
}

TEST(SearchSimulatedPlans, SayOnceWhatDoesNotDivide) {
  const topo::Cluster cluster = example_cluster();
  workload::Job job = example_job();
  job.strategy.micro_batch = 3;
  job.global_batch = 16;
  const auto none = search_simulated_plans(job, cluster, cost::described_rates(cluster));
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(
      none.error().message,
      MatchesRegex("no plan of [^ ]+ fits lab: [^;]*does not divide global_batch 16; choose "
                   "a product that divides it"));
}

TEST(SearchSimulatedPlans, LeaveOutOnCpusWhatTheRuntimeDoesNotExecute) {
  topo::Cluster cluster = example_cluster();
  workload::Job job = example_job();
  job.model.vocab = 258;
  const auto result = search_simulated_plans(job, cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value()) << result.error().message;
  std::set<std::string> reasons;
  for (const RejectedStrategy& one : result->rejected)
    reasons.insert(one.reason);
  EXPECT_TRUE(reasons.contains("tp 4 does not divide vocab 258; choose a divisor of 258"));
  job.strategy.zero = 3;
  EXPECT_THAT(search_simulated_plans(job, cluster, cost::described_rates(cluster)).error().message,
              HasSubstr("zero 3 is not yet executed by the training runtime"));
  job.strategy.zero.reset();
  job.precision = workload::Precision::kFp8;
  EXPECT_THAT(search_simulated_plans(job, cluster, cost::described_rates(cluster)).error().message,
              HasSubstr("precision fp8 is not yet executed"));
}

TEST(SearchSimulatedPlans, PadVocabulariesOnGpus) {
  topo::Cluster cluster = example_cluster();
  cluster.server_types["cpu-2"].device.kind = topo::DeviceKind::kGpu;
  workload::Job job = example_job();
  job.model.vocab = 257;
  job.strategy.tp = 2;
  EXPECT_TRUE(search_simulated_plans(job, cluster, cost::described_rates(cluster)).has_value());
  job.strategy.sequence_parallel = true;
  EXPECT_THAT(search_simulated_plans(job, cluster, cost::described_rates(cluster)).error().message,
              HasSubstr("sequence_parallel true is not yet predicted"));
}

TEST(SweepSelection, SpreadsDifferentStrategiesOverTheRange) {
  const topo::Cluster cluster = example_cluster();
  const auto result =
      search_simulated_plans(example_job(), cluster, cost::described_rates(cluster));
  ASSERT_TRUE(result.has_value());
  const std::vector<SimulatedPlan> plans = sweep_selection(*result, 8);
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

}  // namespace
}  // namespace regatta::plan
