#include "regatta/planning/plan/internal/placement/placement_search.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/internal/placement/placement_lower_bound.h"
#include "regatta/planning/plan/internal/placement/placement_state.h"
#include "regatta/planning/plan/test_placement_fabrics.h"

namespace regatta::plan {
namespace {

struct Problem {
  workload::Strategy strategy;
  PlacementProblem network;
};

int pick(std::mt19937& random, const std::vector<int>& values) {
  return values[random() % values.size()];
}

// Up to 12 servers in leaves of 2 to 4, one to three tiers, oversubscribed up to 8 times, some
// servers failed; every axis beyond servers of two or four devices in turn.
Problem random_problem(std::mt19937& random) {
  while (true) {
    PlacementTestFabric test{.servers = pick(random, {4, 6, 8, 9, 10, 11, 12}),
                             .devices = pick(random, {2, 4}),
                             .per_leaf = pick(random, {2, 3, 4, 12})};
    test.leaf_share = 1.0 / pick(random, {1, 2, 3, 4, 8});
    test.per_group = pick(random, {0, 0, 1, 2});
    test.group_share = 1.0 / pick(random, {1, 2, 4, 8});
    const topo::Cluster cluster = placement_test_cluster(test);
    const int failed = pick(random, {0, 0, 1, 2, 3});
    workload::Strategy strategy;
    strategy.tp = pick(random, {1, 2, test.devices});
    strategy.cp = pick(random, {1, 1, 2, 4});
    strategy.dp = pick(random, {1, 2, 3, 4, 6, 8, 12});
    strategy.pp = pick(random, {1, 2, 3, 4, 6});
    strategy.ep = pick(random, {1, 1, 2, 4, 8});
    const int world = strategy.world_size();
    if (world % test.devices != 0 || strategy.dp * strategy.cp % strategy.ep != 0) continue;
    const int slots = world / test.devices;
    if (slots < 3 || slots > test.servers - failed) continue;
    const TestBytes bytes{.cp = 1e9 * pick(random, {1, 5, 20}),
                          .ep = 1e9 * pick(random, {1, 5, 20}),
                          .pp = 1e8 * pick(random, {1, 5, 20, 80}),
                          .dp = 1e9 * pick(random, {1, 4, 10})};
    StrategyTraffic traffic = test_traffic(strategy, bytes);
    traffic[static_cast<std::size_t>(ParallelAxis::kDp)].overlap = pick(random, {0, 1}) * 0.8;
    traffic[static_cast<std::size_t>(ParallelAxis::kDp)].beside = Seconds{0.05};
    return {strategy, placement_problem(cluster, remaining_servers(cluster, failed, random),
                                        traffic, slots, 1)};
  }
}

TEST(SearchAssignment, ComesWithinAFewPercentOfTheBestOfAllForRandomFragmentedClusters) {
  std::mt19937 random(11);
  int worse_in_order = 0;
  int optimal = 0;
  double worst = 1;
  constexpr int kCases = 400;
  for (int i = 0; i < kCases; ++i) {
    const Problem problem = random_problem(random);
    const PlacementProblem& network = problem.network;
    const auto of = [&](const LeafAssignment& leaves) {
      return placement_time(network, leaves).total.value;
    };
    const double best = of(exhaustive_assignment(network));
    const double bound = placement_lower_bound(network).value;
    const double found = of(search_assignment(network, {.enough = bound}).leaf_of);
    const double in_order = of(rank_order_assignment(network));
    ASSERT_LE(bound, best * (1 + 1e-9)) << i << ' ' << to_string(problem.strategy);
    EXPECT_LE(found, in_order * (1 + 1e-12)) << i;
    EXPECT_LE(found, best * 1.05) << i << ' ' << to_string(problem.strategy);
    EXPECT_GE(found, best * (1 - 1e-9)) << i;
    worst = std::max(worst, best > 0 ? found / best : 1);
    optimal += found <= best * (1 + 1e-9) ? 1 : 0;
    worse_in_order += in_order > best * 1.05 ? 1 : 0;
  }
  RecordProperty("worst_ratio", std::to_string(worst));
  RecordProperty("optimal", optimal);
  RecordProperty("rank_order_over_5_percent", worse_in_order);
  EXPECT_GE(worse_in_order, kCases / 10);  // the cases are worth searching
}

TEST(PlacementState, KnowsAfterEachChangeWhatCountingFromScratchGives) {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_problem(random);
    const PlacementProblem& network = problem.network;
    PlacementState state(network, rank_order_assignment(network));
    for (int step = 0; step < 40; ++step) {
      const int slot = static_cast<int>(random() % static_cast<unsigned>(network.slots));
      const int leaf = static_cast<int>(random() % network.leaves.size());
      if (leaf == state.leaf(slot)) continue;
      PlacementMove change{.slot = slot, .other = -1, .leaf = leaf};
      if (state.free(leaf) == 0) change.other = state.slots_in(leaf).front();
      const PlacementObjective before = state.score();
      const PlacementObjective told = state.score_after(change);
      EXPECT_EQ(state.score().time, before.time);
      state.make(change);
      const double counted = placement_time(network, state.leaves()).total.value;
      ASSERT_NEAR(told.time, counted, 1e-9 * counted) << to_string(problem.strategy);
      ASSERT_EQ(told.time, state.score().time);
      ASSERT_EQ(told.carried, state.score().carried);
    }
  }
}

TEST(SearchAssignment, GivesTheSameForTheSameSeed) {
  std::mt19937 random(3);
  for (int i = 0; i < 5; ++i) {
    const Problem problem = random_problem(random);
    EXPECT_EQ(search_assignment(problem.network, {}).leaf_of,
              search_assignment(problem.network, {}).leaf_of);
  }
}

}  // namespace
}  // namespace regatta::plan
