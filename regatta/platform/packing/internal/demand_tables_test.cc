#include "regatta/platform/packing/internal/demand_tables.h"

#include <gtest/gtest.h>

#include "regatta/platform/packing/internal/pool_prices.h"

namespace regatta::packing {
namespace {

constexpr int kCpu = 1000;

TEST(DemandTables, TypicalPodsAreTheMostFrequentThatCoverTheShare) {
  std::vector<PodClass> pods(6, PodClass{kCpu, 0, 1, 500});
  pods.insert(pods.end(), 3, PodClass{kCpu, 0, 1, 300});
  pods.push_back({kCpu, 0, 1, 100});
  const auto typical = typical_pods(pods, 0.9);
  ASSERT_EQ(typical.size(), 2U);
  EXPECT_EQ(typical[0].pod.gpu_milli, 500);
  EXPECT_DOUBLE_EQ(typical[0].weight, 6.0 / 9);
  EXPECT_EQ(typical_pods(pods, 1).size(), 3U);
}

TEST(DemandTables, APodThatLacksCpuOrTheModelUsesNothing) {
  const DemandTables tables(
      {{PodClass{2 * kCpu, 0, 1, 400}, 0.5}, {PodClass{kCpu, 0, 1, 700, 1U}, 0.5}}, 2, 0);
  NodeState node{
      .cpu_milli = 2 * kCpu, .memory_mib = 0, .model = 0, .gpus = 2, .gpu_free = {600, 900}};
  EXPECT_DOUBLE_EQ(tables.usable(node), 0.5 * (600 + 900) + 0.5 * 900);
  node.cpu_milli = kCpu;
  EXPECT_DOUBLE_EQ(tables.usable(node), 0.5 * 900);
  node.model = 1;
  EXPECT_DOUBLE_EQ(tables.usable(node), 0);
}

TEST(DemandTables, PodsOnSeveralGpusNeedEnoughOfThemTogether) {
  const DemandTables tables({{PodClass{0, 0, 2, 1000}, 1.0}}, 1, 0);
  NodeState node{.gpus = 3, .gpu_free = {1000, 400, 1000}};
  EXPECT_DOUBLE_EQ(tables.usable(node), 2000);
  node.gpu_free[2] = 999;
  EXPECT_DOUBLE_EQ(tables.usable(node), 0);
}

TEST(DemandTables, ADeviceWaitsForTheBetterOfTwoArrivals) {
  // With one arrival it takes what comes: 0.5 x 600 + 0.5 x 1000. With two it takes the 1000 alone
  // whenever one comes, and the 600 only as the last: E = 0.5 x 1000 + 0.5 x max(800, 600) = 900.
  const std::vector<WeightedPodClass> demand = {{PodClass{0, 0, 1, 600}, 0.5},
                                                {PodClass{0, 0, 1, 1000}, 0.5}};
  EXPECT_DOUBLE_EQ(DemandTables(demand, 1, 1).device_usable(0, 1)[1000], 800);
  EXPECT_DOUBLE_EQ(DemandTables(demand, 1, 2).device_usable(0, 1)[1000], 900);
  EXPECT_DOUBLE_EQ(DemandTables(demand, 1, 2).device_usable(0, 1)[599], 0);
}

TEST(PoolPrices, AModelThatFewPoolsOfferBecomesDear) {
  const PodClass any{0, 0, 1, 1000};
  const PodClass picky{0, 0, 1, 1000, 1U};
  PoolPrices prices({{any, 0.4}, {picky, 0.6}}, 2);
  const std::vector<NodePool> pools = {{0, 1, 50000, 1e6}, {1, 1, 50000, 1e6}};
  for (int i = 0; i < 200; ++i)
    prices.step(pools, 0.02);
  EXPECT_GT(prices.cost(any, 0), prices.cost(any, 1) + 0.03);
}

}  // namespace
}  // namespace regatta::packing
