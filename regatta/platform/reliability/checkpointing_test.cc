#include "regatta/platform/reliability/checkpointing.h"

#include <gtest/gtest.h>

namespace regatta::reliability {
namespace {

constexpr Seconds kMinute{60};

RestartCosts daly_example(Seconds between_failures) {
  return {.save = 5 * kMinute,
          .detect = {},
          .replace = {},
          .load = 10 * kMinute,
          .between_failures = between_failures};
}

// Daly, FGCS 22(3), 2006, captions of figures 3 to 5: R = 10 min, d = 5 min; 117, 57 and 9.1 min.
TEST(DalyInterval, IsThePublishedOneInThreeExamples) {
  EXPECT_NEAR(daly_interval(daly_example(24 * kHour)) / kMinute, 117, 0.5);
  EXPECT_NEAR(daly_interval(daly_example(6 * kHour)) / kMinute, 57, 0.5);
  EXPECT_NEAR(daly_interval(daly_example(15 * kMinute)) / kMinute, 9.1, 0.05);
}

TEST(DalyInterval, IsTheTimeBetweenFailuresWhereSavingTakesLongerThanTwice) {
  const RestartCosts costs = daly_example(2 * kMinute);
  EXPECT_EQ(daly_interval(costs), costs.between_failures);
}

TEST(ExactInterval, HasTheBestRatioOfAllIntervals) {
  for (const double minutes : {3.0, 15.0, 90.0, 1440.0}) {
    const RestartCosts costs = daly_example(minutes * kMinute);
    const Seconds best = exact_interval(costs);
    for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0})
      EXPECT_GT(expected_ettr(costs, best), expected_ettr(costs, best * factor))
          << minutes << " min, factor " << factor;
    EXPECT_GE(expected_ettr(costs, best), expected_ettr(costs, young_interval(costs)));
  }
}

TEST(Intervals, AgreeWhereFailuresAreRare) {
  const RestartCosts costs{
      .save = {1}, .detect = {}, .replace = {}, .load = {10}, .between_failures = 1000 * kDay};
  const double exact = exact_interval(costs).value;
  EXPECT_NEAR(young_interval(costs).value / exact, 1, 1e-3);
  EXPECT_NEAR(daly_interval(costs).value / exact, 1, 1e-6);
  EXPECT_NEAR(daly_first_order_interval(costs).value / exact, 1, 1e-3);
}

TEST(ExpectedEttr, AndTheLostTimesOfADayAddUpToADay) {
  for (const double hours : {0.5, 3.0, 40.0}) {
    const RestartCosts costs = daly_example(hours * kHour);
    const Seconds interval = daly_interval(costs);
    const LostTime lost = lost_per_day(costs, interval);
    const Seconds sum =
        expected_ettr(costs, interval) * kDay + lost.save + lost.recompute + lost.restart;
    EXPECT_NEAR(sum / kDay, 1, 1e-12);
  }
}

TEST(FirstOrderEttr, IsCloseToTheCompleteOneAndNeverNegative) {
  const RestartCosts rare = daly_example(100 * kHour);
  const Seconds interval = young_interval(rare);
  EXPECT_NEAR(first_order_ettr(rare, interval), expected_ettr(rare, interval), 0.002);
  EXPECT_EQ(first_order_ettr(daly_example(kMinute), kHour), 0);
}

// Kokolis et al., HPCA 2025: 6.5 failures in 1,000 node-days give 1.8 h at 16,384 GPUs (2,048
// nodes), where saving and restarting take 5 min each; "ETTR" then is about 0.7 by their formula.
TEST(FirstOrderEttr, FollowsThePublishedRateOfMetasCluster) {
  const Seconds between = time_between(rate_of(6.5e-3 * 2048, kDay));
  EXPECT_NEAR(between / kHour, 1.8, 0.05);
  const RestartCosts costs{.save = 5 * kMinute,
                           .detect = {},
                           .replace = {},
                           .load = 5 * kMinute,
                           .between_failures = between};
  const double ettr = first_order_ettr(costs, young_interval(costs));
  EXPECT_NEAR(ettr, (1 - (5 + 32.9 / 2) / 108.2) / (1 + 5 / 32.9), 0.001);
}

TEST(EttrWithWaiting, LosesTheShareThatWaits) {
  const RestartCosts costs = daly_example(kDay);
  EXPECT_DOUBLE_EQ(ettr_with_waiting(costs, kHour, 0.25), 0.75 * expected_ettr(costs, kHour));
}

}  // namespace
}  // namespace regatta::reliability
