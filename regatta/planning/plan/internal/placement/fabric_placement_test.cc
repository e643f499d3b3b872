#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/internal/placement/placement_search.h"
#include "regatta/planning/plan/internal/search/strategy_space.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/test_placement_fabrics.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;

std::vector<ServerId> all_servers(const topo::Cluster& cluster) {
  return *servers_without(cluster, {});
}

Result<FabricPlacement> place(const topo::Cluster& cluster, const workload::Strategy& strategy,
                              const TestBytes& bytes, const std::vector<ServerId>& servers) {
  const StrategyTraffic traffic = test_traffic(strategy, bytes);
  return place_on_fabric(
      {.cluster = cluster, .strategy = strategy, .traffic = traffic, .servers = servers});
}

TEST(PlaceOnFabric, KeepsTheHeavierAxisWithinLeaves) {
  const topo::Cluster cluster = placement_test_cluster({.servers = 16, .leaf_share = 0.125});
  const workload::Strategy strategy{.tp = 8, .pp = 4, .dp = 4};
  const auto replicas = place(cluster, strategy, {.pp = 1e8, .dp = 4e9}, all_servers(cluster));
  ASSERT_TRUE(replicas);
  EXPECT_EQ(replicas->sentence,
            "tp within servers, pp across leaves, dp within leaves; 12 of 28 connections between "
            "servers cross a spine");
  const auto stages = place(cluster, strategy, {.pp = 1e11, .dp = 1e8}, all_servers(cluster));
  ASSERT_TRUE(stages);
  EXPECT_THAT(stages->sentence, HasSubstr("pp within leaves, dp across leaves"));
  EXPECT_LT(stages->time.total, stages->rank_order.total);
}

// A ring of four servers in one leaf of four sends nothing up; each NIC sends 4 GB at 50 GB/s. Four
// boundaries of 8 x 1 GB, one way, leave each leaf in the middle twice, at a quarter of 1600 GB/s.
TEST(PlaceOnFabric, CountsWhatTheBusiestUplinkCarries) {
  const topo::Cluster cluster = placement_test_cluster({.servers = 16, .leaf_share = 0.25});
  const workload::Strategy strategy{.tp = 8, .pp = 4, .dp = 4};
  const auto placed = place(cluster, strategy, {.pp = 1e9, .dp = 4e9}, all_servers(cluster));
  ASSERT_TRUE(placed);
  EXPECT_NEAR(placed->rank_order.axes[static_cast<std::size_t>(ParallelAxis::kDp)].value,
              4e9 / 50e9, 1e-9);
  EXPECT_NEAR(placed->rank_order.axes[static_cast<std::size_t>(ParallelAxis::kPp)].value,
              2 * 4 * 8e9 / 400e9, 1e-9);
  EXPECT_LE(placed->time.total, placed->rank_order.total);
  EXPECT_LE(placed->lower_bound, placed->time.total);
}

// Racks of three servers, one of them spare: a job on four servers takes two of each rack.
topo::Cluster cluster_of_racks() {
  topo::Cluster cluster = placement_test_cluster({.servers = 12, .per_leaf = 3});
  cluster.server_types["gpu"].scale_up = {.servers = 3, .bandwidth = BytesPerSecond{900e9}};
  return cluster;
}

TEST(PlaceOnFabric, SendsNothingOverNicsInsideADomain) {
  const topo::Cluster cluster = cluster_of_racks();
  const workload::Strategy strategy{.tp = 16, .pp = 4};
  const auto placed = place(cluster, strategy, {.tp = 4e9, .pp = 1e9}, all_servers(cluster));
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(placed->time.axes[static_cast<std::size_t>(ParallelAxis::kTp)].value, 0);
  EXPECT_GT(placed->time.axes[static_cast<std::size_t>(ParallelAxis::kPp)].value, 0);
  EXPECT_THAT(placed->sentence, HasSubstr("tp within domains"));
  for (int rank = 0; rank < 64; rank += 16) {
    const int first = at(placed->device_of_rank, rank).server.value;
    EXPECT_EQ(first % 3, 0) << "two servers of one rack";
    EXPECT_EQ(at(placed->device_of_rank, rank + 15).server.value, first + 1);
    EXPECT_EQ(at(placed->device_of_rank, rank + 15).index, 7);
  }
}

TEST(PlaceOnFabric, TakesTheServersThatAreLeftOfADomain) {
  const topo::Cluster cluster = cluster_of_racks();
  const workload::Strategy strategy{.tp = 16, .pp = 4};
  std::vector<ServerId> servers = all_servers(cluster);
  servers.erase(servers.begin());  // s0: s1 and s2 are left
  EXPECT_TRUE(place(cluster, strategy, {}, servers));
  servers.erase(servers.begin());
  const auto refused = place(cluster, strategy, {}, servers);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("4 parts of domains of 2 servers are needed, and 3 may be used"));
}

TEST(PlaceOnFabric, UsesEachServerOnceAndNoneThatFailed) {
  std::mt19937 random(4);
  const topo::Cluster cluster =
      placement_test_cluster({.servers = 64, .per_leaf = 8, .leaf_share = 0.5});
  const auto servers = remaining_servers(cluster, 10, random);
  const workload::Strategy strategy{.tp = 8, .pp = 4, .dp = 12};
  const auto placed = place(cluster, strategy, {}, servers);
  ASSERT_TRUE(placed);
  const std::set<topo::DeviceRef> devices(placed->device_of_rank.begin(),
                                          placed->device_of_rank.end());
  EXPECT_EQ(devices.size(), static_cast<std::size_t>(strategy.world_size()));
  for (const topo::DeviceRef device : devices)
    EXPECT_TRUE(std::count(servers.begin(), servers.end(), device.server)) << device.server.value;
  for (int rank = 0; rank < strategy.world_size(); rank += 8)
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(at(placed->device_of_rank, rank + i).index, i);
}

TEST(PlaceOnFabric, PlacesAJobSmallerThanAServer) {
  const topo::Cluster cluster = placement_test_cluster({.servers = 4});
  const auto placed = place(cluster, {.tp = 2, .dp = 2}, {}, all_servers(cluster));
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->device_of_rank.size(), 4U);
  EXPECT_EQ(placed->sentence, "tp within servers, dp within servers");
}

TEST(PlaceOnFabric, SaysWhatIsWrongWithServersAndStrategy) {
  const topo::Cluster cluster = placement_test_cluster({.servers = 4});
  const auto message = [&](const workload::Strategy& strategy,
                           const std::vector<ServerId>& servers) {
    const auto placed = place(cluster, strategy, {}, servers);
    return placed ? std::string() : placed.error().message;
  };
  EXPECT_THAT(message({.tp = 8, .dp = 8}, all_servers(cluster)),
              HasSubstr("64 ranks need 8 servers of 8 devices, and 4 may be used"));
  EXPECT_THAT(message({.dp = 12}, all_servers(cluster)), HasSubstr("do not fill servers"));
  EXPECT_THAT(message({.tp = 8}, {}), HasSubstr("no server may be used"));
  EXPECT_THAT(message({.tp = 8}, {{1}, {1}}), HasSubstr("server s1 comes twice"));
  EXPECT_THAT(servers_without(cluster, {"s9"}).error().message, HasSubstr("server s9: not in"));
  EXPECT_EQ(servers_without(cluster, {"s1", "s2"})->size(), 2U);
}

TEST(StrategyTraffic, GivesTheVolumesOfAModel) {
  const workload::ModelShape& model = workload::find_model_preset("gpt3-175b")->model;
  workload::Strategy strategy{.tp = 8, .pp = 8, .dp = 16};
  const topo::ServerType server = *topo::find_server_preset("dgx-h100");
  const EstimateInput input{.model = model,
                            .strategy = strategy,
                            .global_batch = 512,
                            .server = server,
                            .stack = *cost::find_software_stack("megatron-core")};
  const MicroBatchWork work = micro_batch_work(input, machine_model(input));
  const StrategyTraffic traffic = strategy_traffic(input, work, 32);
  const auto lines = [&](ParallelAxis axis) {
    return traffic[static_cast<std::size_t>(axis)].lines;
  };
  ASSERT_EQ(lines(ParallelAxis::kPp).size(), 1U);
  EXPECT_EQ(lines(ParallelAxis::kPp)[0].stride, 128);
  EXPECT_DOUBLE_EQ(lines(ParallelAxis::kPp)[0].bytes, work.boundary * 32);
  ASSERT_EQ(lines(ParallelAxis::kDp).size(), 1U);
  EXPECT_EQ(lines(ParallelAxis::kDp)[0].ranks, 16);
  // Two passes over 175e9 / 64 gradients, and the token table.
  const double gradients = input.stack.traits.gradient_bytes * 175e9 / 64;
  EXPECT_NEAR(lines(ParallelAxis::kDp)[0].bytes, 2 * gradients * 15 / 16, 0.06 * 2 * gradients);
  EXPECT_TRUE(lines(ParallelAxis::kCp).empty());
}

// 5 % of 1,024 servers failed, and the job takes 960 of the rest.
TEST(PlaceOnFabric, PlacesOnAThousandServersInASecondFarBelowARandomOrder) {
  std::mt19937 random(2);
  for (const double share : {0.5, 0.25, 0.125}) {
    const topo::Cluster cluster =
        placement_test_cluster({.servers = 1024, .per_leaf = 16, .leaf_share = share});
    auto servers = remaining_servers(cluster, 51, random);
    const workload::Strategy strategy{.tp = 8, .pp = 16, .dp = 60};
    const auto start = std::chrono::steady_clock::now();
    const auto placed = place(cluster, strategy, {}, servers);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(placed);
    const double time = placed->time.total.value;
    EXPECT_LT(took.count(), 5);  // a fifth of a second when nothing else runs; sanitizers are slow
    EXPECT_GE(placed->rank_order.total.value, time * 1.25);
    // Leaves of 13 to 16 servers do not hold equal boxes; without oversubscription nothing is lost.
    EXPECT_LE(time, placed->lower_bound.value * (share == 0.5 ? 1.05 : share == 0.25 ? 1.1 : 1.25));
    const StrategyTraffic traffic = test_traffic(strategy, {});
    const PlacementProblem network = placement_problem(cluster, servers, traffic, 960, 1);
    LeafAssignment leaves;
    for (std::size_t leaf = 0; leaf < network.leaves.size(); ++leaf)
      leaves.insert(leaves.end(), network.leaves[leaf].servers.size(), static_cast<int>(leaf));
    std::shuffle(leaves.begin(), leaves.end(), random);
    leaves.resize(960);
    EXPECT_GE(placement_time(network, leaves).total.value, 1.5 * time);
  }
}

// Eight servers of eight H100, two below a leaf whose uplinks carry a quarter.
topo::Cluster h100_cluster() {
  topo::Cluster cluster = placement_test_cluster({.per_leaf = 2});
  cluster.server_types["gpu"] = *topo::find_server_preset("dgx-h100");
  return cluster;
}

workload::Job llama_job() {
  workload::Job job{.name = "llama"};
  job.model = workload::find_model_preset("llama2-7b")->model;
  job.global_batch = 64;
  return job;
}

TEST(PlacePlan, GivesThePlacementAtTheRatesOfTheStackWithItsScore) {
  const workload::Job job = llama_job();
  const topo::Cluster cluster = h100_cluster();
  const cost::SoftwareStack& stack = *cost::find_software_stack("megatron-core");
  auto problem = planning_problem(job, cluster, stack);
  ASSERT_TRUE(problem) << problem.error().message;
  problem->devices = 32;
  const workload::Strategy strategy{.tp = 8, .pp = 2, .dp = 2};
  const auto placed = place_plan(cluster, *problem, strategy, {"s1", "s6"});
  ASSERT_TRUE(placed);
  for (const topo::DeviceRef device : placed->placement.device_of_rank)
    EXPECT_TRUE(device.server.value != 1 && device.server.value != 6) << device.server.value;
  const EstimateInput input = input_of(*problem, strategy);
  const StrategyTraffic traffic =
      strategy_traffic(input, micro_batch_work(input, problem->machine), 32);
  const auto expected =
      place_on_fabric({.cluster = cluster,
                       .strategy = strategy,
                       .traffic = traffic,
                       .servers = *servers_without(cluster, {"s1", "s6"}),
                       .network_efficiency = stack.calibration.network_efficiency});
  ASSERT_TRUE(expected);
  EXPECT_GT(placed->placement.time.total.value, 0);
  EXPECT_DOUBLE_EQ(placed->placement.time.total.value, expected->time.total.value);
  EXPECT_EQ(placed->placement.device_of_rank, expected->device_of_rank);
  const PlacementScore score =
      score_placement(cluster, job.model, strategy, expected->device_of_rank);
  EXPECT_GT(score.all.hops, 0);
  EXPECT_EQ(placed->score.all.hops, score.all.hops);
}

TEST(PlacePlan, GivesNothingWhereNoPlacementIsNeededOrFound) {
  const workload::Job job = llama_job();
  topo::Cluster cluster = h100_cluster();
  const auto problem = planning_problem(job, cluster, *cost::find_software_stack("megatron-core"));
  ASSERT_TRUE(problem) << problem.error().message;
  const workload::Strategy strategy{.tp = 8, .dp = 4};
  EXPECT_TRUE(place_plan(cluster, *problem, strategy, {}));
  EXPECT_FALSE(place_plan(cluster, *problem, strategy, {"s9"}));
  EXPECT_FALSE(place_plan(cluster, *problem, strategy, {"s0", "s1", "s2", "s3", "s4"}));
  EXPECT_FALSE(place_plan(cluster, *problem, {.dp = 12}, {}));
  cluster.fabric.tiers = 1;
  EXPECT_FALSE(place_plan(cluster, *problem, strategy, {}));
}

// A step waits for the network at least as long as its busiest link is in use.
TEST(PlacePlan, BoundsNoStepThatIsFaster) {
  topo::Cluster cluster = placement_test_cluster({.servers = 32, .per_leaf = 8, .leaf_share = 1});
  topo::ServerType type = *topo::find_server_preset("h800-8");
  type.name = "gpu";
  cluster.server_types["gpu"] = type;
  workload::Job job{.name = "v3"};
  job.model = workload::find_model_preset("deepseek-v3")->model;
  job.global_batch = 2048;
  job.precision = workload::Precision::kFp8;
  const auto problem = planning_problem(job, cluster, *cost::find_software_stack("nemo"));
  ASSERT_TRUE(problem) << problem.error().message;
  const StrategySpaceInput space{.model = job.model,
                                 .global_batch = job.global_batch,
                                 .request = job.strategy,
                                 .devices = problem->devices,
                                 .every_form = true};
  std::vector<workload::Strategy> strategies;
  std::size_t i = 0;
  for (const workload::Strategy& work : work_strategies(space))
    for (const workload::Strategy& staged : stage_counts(space, work))
      if (staged.tp <= 8 && staged.cp == 1 && ++i % 41 == 0)
        add_completions(space, staged, strategies);
  ASSERT_GT(strategies.size(), 1000U);
  int looked_at = 0;
  int with_shared_weights = 0;
  for (std::size_t k = 0; k < strategies.size(); k += strategies.size() / 300) {
    const auto estimate = exact_plan(*problem, strategies[k]);
    ASSERT_TRUE(estimate) << estimate.error().message;
    const auto placed = place_plan(cluster, *problem, strategies[k], {});
    if (!placed) continue;
    ++looked_at;
    with_shared_weights += strategies[k].zero == 3 ? 1 : 0;
    EXPECT_LE(placed->placement.lower_bound.value, estimate->estimate.step.total().value)
        << to_string(strategies[k]);
  }
  EXPECT_GT(looked_at, 100);
  EXPECT_GT(with_shared_weights, 20);
}

}  // namespace
}  // namespace regatta::plan
