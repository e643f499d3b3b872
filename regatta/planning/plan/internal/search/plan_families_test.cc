#include "regatta/planning/plan/internal/search/plan_families.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace regatta::plan {
namespace {

Plan plan_of(const workload::Strategy& strategy, double seconds, double bytes = 1e9) {
  Plan plan{.strategy = strategy, .estimate = {}};
  plan.estimate.step.matmul = Seconds{seconds};
  plan.estimate.memory.weights = bytes;
  return plan;
}

FamilyBest family(const std::vector<Plan>& plans) {
  FamilyBest best;
  for (const Plan& plan : plans)
    best.offer(plan);
  return best;
}

TEST(FamilyBest, IsTheSimplestOfThoseThatAreAsFast) {
  const FamilyBest best =
      family({plan_of({.dp = 8, .zero = 2}, 1.0), plan_of({.dp = 8, .zero = 1}, 1.0009),
              plan_of({.dp = 8, .zero = 0}, 1.002)});
  EXPECT_EQ(best.best().strategy.zero, 1);
  EXPECT_EQ(best.fastest(), 1.0);
}

TEST(FamilyBest, IsThatOfTheLeastMemoryWhereAllElseIsEqual) {
  const FamilyBest best =
      family({plan_of({.dp = 8, .zero = 0}, 1.0, 3e9), plan_of({.dp = 8, .zero = 1}, 1.0, 2e9)});
  EXPECT_EQ(best.best().strategy.zero, 1);
}

TEST(FamilyBest, DoesNotDependOnTheOrderOfOffers) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<Plan> plans;
    for (int i = 0; i < 40; ++i) {
      const double time = 1 + 0.0001 * static_cast<double>(random() % 30);
      const int zero = static_cast<int>(random() % 4);
      const int micro_batch = static_cast<int>(random() % 8) + 1;
      plans.push_back(plan_of({.dp = 8, .micro_batch = micro_batch, .zero = zero}, time,
                              static_cast<double>(random() % 5)));
    }
    const FamilyBest first = family(plans);
    Plan wanted = plans.front();
    const auto fastest = std::min_element(plans.begin(), plans.end(), [](auto& a, auto& b) {
      return a.estimate.step.total() < b.estimate.step.total();
    });
    wanted = *fastest;
    for (const Plan& plan : plans)
      if (plan.estimate.step.total().value <=
              fastest->estimate.step.total().value * (1 + kSameTime) &&
          is_simpler(plan, wanted))
        wanted = plan;
    EXPECT_EQ(first.best().strategy, wanted.strategy);
    std::shuffle(plans.begin(), plans.end(), random);
    EXPECT_EQ(family(plans).best().strategy, wanted.strategy);
  }
}

TEST(RankedFamilies, ListOneOfThoseThatDifferInReplicasAndContextAlone) {
  const std::vector<FamilyBest> families = {family({plan_of({.dp = 2, .cp = 4}, 1.0)}),
                                            family({plan_of({.dp = 4, .cp = 2}, 1.0)}),
                                            family({plan_of({.cp = 8}, 1.1)})};
  const auto ranked = ranked_families(families, 3);
  ASSERT_EQ(ranked.size(), 2U);
  EXPECT_EQ(ranked[0].strategy.cp, 2);
  EXPECT_EQ(ranked[1].strategy.cp, 8);
}

TEST(RankedFamilies, PutFewerParallelFormsFirstWhereTimesAreTheSame) {
  const std::vector<FamilyBest> families = {
      family({plan_of({.cp = 8}, 1.0)}), family({plan_of({.dp = 8}, 1.0008)}),
      family({plan_of({.tp = 8}, 1.01)}), family({plan_of({.tp = 2, .dp = 4}, 1.0005)})};
  const auto ranked = ranked_families(families, 3);
  ASSERT_EQ(ranked.size(), 3U);
  EXPECT_EQ(ranked[0].strategy.dp, 8);
  EXPECT_EQ(ranked[1].strategy.tp, 2);
  EXPECT_EQ(ranked[2].strategy.tp, 8);
}

}  // namespace
}  // namespace regatta::plan
