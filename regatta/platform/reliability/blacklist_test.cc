#include "regatta/platform/reliability/blacklist.h"

#include <gtest/gtest.h>

namespace regatta::reliability {
namespace {

// A job of 100 nodes, each of which fails once a year, with 4 spares; a failure costs an hour.
KeepingTerms example() {
  const RateBelief prior{.shape = 0.5, .exposure = 0.5 * 365 * kDay};
  return {.prior = prior,
          .pool = {.nodes = 100, .node_loss = 100 * prior.mean(), .repair = 2 * kDay},
          .spares = 4,
          .horizon = 60 * kDay,
          .failure_cost = kHour};
}

TEST(IsWorthKeeping, IsTrueOfANodeWithoutFailuresAndFalseOfOneThatFailsEachDay) {
  EXPECT_TRUE(is_worth_keeping({0, 30 * kDay}, example()));
  EXPECT_FALSE(is_worth_keeping({30, 30 * kDay}, example()));
}

TEST(IsWorthKeeping, KeepsAnyNodeOnceNoSpareIsLeft) {
  KeepingTerms terms = example();
  terms.spares = 0;
  EXPECT_TRUE(is_worth_keeping({30, 30 * kDay}, terms)) << "the job would wait all the time";
}

TEST(IsWorthKeeping, KeepsANodeWhoseFailuresCostTheJobNothing) {
  KeepingTerms terms = example();
  terms.failure_cost = {};
  EXPECT_TRUE(is_worth_keeping({30, 30 * kDay}, terms));
}

TEST(NodesToAvoid, TakesTheWorstFirstAndStopsWhereSparesRunOut) {
  std::vector<NodeHistory> nodes(20, {0, 30 * kDay});
  for (const int node : {3, 7, 9, 11, 13, 15})
    nodes[static_cast<std::size_t>(node)].failures = 10 + node;
  const std::vector<int> avoided = nodes_to_avoid(nodes, example());
  ASSERT_FALSE(avoided.empty());
  EXPECT_EQ(avoided.front(), 15);
  EXPECT_LE(avoided.size(), 4U) << "no more than there are spares";
  for (std::size_t i = 1; i < avoided.size(); ++i)
    EXPECT_LT(avoided[i], avoided[i - 1]);
}

TEST(NodesToAvoid, LeavesANodeAloneThatFailedOnce) {
  std::vector<NodeHistory> nodes(20, {0, 30 * kDay});
  nodes[5] = {1, kHour};
  EXPECT_TRUE(nodes_to_avoid(nodes, example()).empty());
}

}  // namespace
}  // namespace regatta::reliability
