#include "regatta/platform/sched/job_request.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace regatta::sched {
namespace {

// Source: the tables of Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.1.
TEST(NormalQuantile, HasTheValuesOfTheTables) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-12);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_quantile(0.025), -1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_quantile(0.9), 1.2815515655446004, 1e-9);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 1e-9);
}

TEST(NormalQuantile, InvertsTheDistributionFromTailToTail) {
  for (double x = -8; x <= 8; x += 0.125)
    EXPECT_NEAR(normal_quantile(0.5 * std::erfc(-x / std::sqrt(2.0))), x, x < 5 ? 1e-9 : 0.02) << x;
}

TEST(RemainingTime, OfAJobThatHasNotBegunIsItsQuantile) {
  const RunTime run_time{.median = {3600}, .log_spread = 1};
  EXPECT_NEAR(remaining_time(run_time, {0}, 0.5).value, 3600, 1e-3);
  EXPECT_NEAR(remaining_time(run_time, {0}, 0.9).value, 3600 * std::exp(1.2815515655), 1e-2);
}

TEST(RemainingTime, FallsWithoutSpreadAndGrowsWithMuch) {
  EXPECT_EQ(remaining_time({.median = {100}}, {30}, 0.5), Seconds{70});
  EXPECT_EQ(remaining_time({.median = {100}}, {130}, 0.5), Seconds{0});
  const RunTime wide{.median = {100}, .log_spread = 2};
  EXPECT_GT(remaining_time(wide, {1000}, 0.5), remaining_time(wide, {100}, 0.5));
}

TEST(RemainingTime, StaysFiniteFarBeyondTheEstimate) {
  const RunTime narrow{.median = {1}, .log_spread = 0.01};
  EXPECT_EQ(remaining_time(narrow, {1e6}, 0.5), Seconds{1e6});
}

TEST(RemainingTime, IsInfiniteWhereNothingIsKnown) {
  EXPECT_EQ(remaining_time({}, {5}, 0.5).value, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace regatta::sched
