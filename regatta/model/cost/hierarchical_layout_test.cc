#include "regatta/model/cost/hierarchical_layout.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gmock/gmock.h>

namespace regatta::cost {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

const std::vector<BytesPerSecond> kUnknown(8);

TEST(PlanHierarchicalLayout, GivesARowAServerWhateverTheOrderOfTheRanks) {
  const auto contiguous = plan_hierarchical_layout({{0, 0, 1, 1}, kUnknown});
  ASSERT_TRUE(contiguous);
  EXPECT_THAT(contiguous->servers, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  const auto interleaved = plan_hierarchical_layout({{7, 3, 7, 3}, kUnknown});
  ASSERT_TRUE(interleaved);
  EXPECT_THAT(interleaved->servers, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_TRUE(interleaved->is_ring);
}

TEST(PlanHierarchicalLayout, IsNothingWhereOneRingIsBest) {
  EXPECT_FALSE(plan_hierarchical_layout({{0, 0, 0}, kUnknown}));
  EXPECT_FALSE(plan_hierarchical_layout({{0, 1, 2, 3}, kUnknown}));
  EXPECT_FALSE(plan_hierarchical_layout({{0, 0, 1}, kUnknown}));  // rows of different length
  const BytesPerSecond rate{1e8};
  EXPECT_FALSE(plan_hierarchical_layout({{0, 1, 2}, {rate, rate, rate}}));
}

TEST(PlanHierarchicalLayout, LetsAServerOnASlowLinkOwnNothing) {
  const BytesPerSecond fast{125e6};
  const auto grid = plan_hierarchical_layout({{0, 1, 2, 3}, {fast, fast, fast, {31.25e6}}});
  ASSERT_TRUE(grid);
  EXPECT_FALSE(grid->is_ring);
  EXPECT_THAT(grid->weights, ElementsAre(DoubleNear(1.0 / 3, 1e-9), DoubleNear(1.0 / 3, 1e-9),
                                         DoubleNear(1.0 / 3, 1e-9), DoubleNear(0, 1e-9)));
}

TEST(BalancedLinkShares, LetsAllLinksEndTogetherWhereNoneIsMuchSlower) {
  const std::vector<BytesPerSecond> rates = {{100e6}, {100e6}, {80e6}};
  const auto weights = balanced_link_shares(rates);
  EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1, 1e-9);
  EXPECT_NEAR((1 + weights[0]) / 100e6, (1 + weights[2]) / 80e6, 1e-15);
  EXPECT_LT(weights[2], weights[0]);
}

// No other shares do better than those found.
TEST(BalancedLinkShares, FindsTheLeastTime) {
  std::mt19937 random(5);
  const auto time_of = [](const std::vector<BytesPerSecond>& rates,
                          const std::vector<double>& weights) {
    double slowest = 0;
    for (std::size_t i = 0; i < rates.size(); ++i)
      slowest = std::max(
          slowest, (1 + (static_cast<double>(rates.size()) - 2) * weights[i]) / rates[i].value);
    return slowest;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<BytesPerSecond> rates(3 + random() % 5);
    for (auto& rate : rates)
      rate.value = 1e6 * static_cast<double>(1 + random() % 100);
    const double found = time_of(rates, balanced_link_shares(rates));
    for (int other = 0; other < 50; ++other) {
      std::vector<double> weights(rates.size());
      for (double& weight : weights)
        weight = static_cast<double>(random() % 1000);
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0) + 1e-9;
      for (double& weight : weights)
        weight /= sum;
      EXPECT_LE(found, time_of(rates, weights) * (1 + 1e-9)) << "round " << round;
    }
  }
}

TEST(AllReduceBound, IsThatOfTheRingWhereAllLinksAreAlike) {
  const BytesPerSecond rate{125e6};
  const RankLocations four{{0, 1, 2, 3}, {rate, rate, rate, rate}};
  EXPECT_NEAR(all_reduce_bound(Bytes{1000000}, four).value, 1.5e6 / 125e6, 1e-12);
  const RankLocations two_by_two{{0, 1, 0, 1}, {rate, rate, rate, rate}};
  EXPECT_NEAR(all_reduce_bound(Bytes{1000000}, two_by_two).value, 1e6 / 125e6, 1e-12);
  EXPECT_EQ(all_reduce_bound(Bytes{1000000}, {{0, 0}, {rate, rate}}).value, 0);
}

TEST(AllReduceBound, IsOnceTheVectorOverASlowLink) {
  const BytesPerSecond rate{125e6};
  const RankLocations sites{{0, 1, 2, 3}, {rate, rate, rate, {31.25e6}}};
  EXPECT_NEAR(all_reduce_bound(Bytes{1000000}, sites).value, 1e6 / 31.25e6, 1e-9);
}

TEST(HierarchicalFlows, SendOverTheNetworkWhatTheRingOfServersSends) {
  const HierarchicalLayout grid{{{0, 1}, {2, 3}}, {0.5, 0.5}, true};
  double out_of_first = 0;
  double inside = 0;
  for (const HierarchicalFlow& flow : hierarchical_flows(grid)) {
    const bool crosses = (flow.from < 2) != (flow.to < 2);
    if (crosses && flow.from < 2) out_of_first += flow.bytes;
    if (!crosses && flow.from == 0) inside += flow.bytes;
  }
  EXPECT_DOUBLE_EQ(out_of_first, 1);  // 2 (N-1)/N
  EXPECT_DOUBLE_EQ(inside, 1);        // 2 (P-1)/P
  EXPECT_EQ(hierarchical_steps(grid), 4);
}

TEST(HierarchicalFlows, LetAServerThatOwnsNothingSendItsInputOnce) {
  const HierarchicalLayout grid{{{0}, {1}, {2}, {3}}, {1.0 / 3, 1.0 / 3, 1.0 / 3, 0}, false};
  double out = 0;
  double in = 0;
  for (const HierarchicalFlow& flow : hierarchical_flows(grid)) {
    if (flow.from == 3) out += flow.bytes;
    if (flow.to == 3) in += flow.bytes;
  }
  EXPECT_NEAR(out, 1, 1e-12);
  EXPECT_NEAR(in, 1, 1e-12);
}

}  // namespace
}  // namespace regatta::cost
