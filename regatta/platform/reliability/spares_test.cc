#include "regatta/platform/reliability/spares.h"

#include <gtest/gtest.h>

namespace regatta::reliability {
namespace {

// 6.6 node losses a day that take 2 days to repair: 13.2 nodes away on average.
SparePool example() {
  return {.nodes = 2048, .node_loss = rate_of(6.6, kDay), .repair = 2 * kDay, .spare_price = 1};
}

// Erlang's published table: 10 lines, 5 erlang, 1.84 % lost.
TEST(ErlangB, IsThePublishedLoss) {
  EXPECT_NEAR(erlang_b(10, 5), 0.0184, 5e-5);
  EXPECT_EQ(erlang_b(0, 5), 1);
  EXPECT_EQ(erlang_b(3, 0), 0);
}

TEST(SparesNeeded, HasTheLeastCostOfAll) {
  const SparePool pool = example();
  const int best = spares_needed(pool);
  for (int spares = 0; spares < 100; ++spares)
    EXPECT_LE(cost_of_spares(pool, best), cost_of_spares(pool, spares)) << spares;
  EXPECT_GT(best, 13);
  EXPECT_LT(best, 40);
}

TEST(SparesNeeded, IsMoreWhereSparesAreCheapAndNoneWhereNothingIsLost) {
  SparePool pool = example();
  const int full = spares_needed(pool);
  pool.spare_price = 0.1;
  EXPECT_GT(spares_needed(pool), full);
  pool.node_loss = {0};
  EXPECT_EQ(spares_needed(pool), 0);
}

TEST(SparesForShare, IsTheQuantileOfAPoissonDistribution) {
  // Poisson of mean 13.2: P(X <= 22) = 0.9904, P(X <= 21) = 0.9816.
  EXPECT_EQ(*spares_for_share(example(), 0.99), 22);
  EXPECT_EQ(*spares_for_share({.nodes = 1, .node_loss = {0}, .repair = kDay}, 0.99), 0);
  EXPECT_FALSE(spares_for_share(example(), 1));
}

TEST(WaitForLackOfOne, FallsWithTheSparesThatThereAre) {
  const SparePool pool = example();
  EXPECT_GT(wait_for_lack_of_one(pool, 5, kDay), wait_for_lack_of_one(pool, 20, kDay));
  EXPECT_EQ(wait_for_lack_of_one(pool, 0, kDay), kDay);
}

}  // namespace
}  // namespace regatta::reliability
