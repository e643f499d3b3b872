#include "regatta/runtime/comm/internal/watch/link_utilization.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kNames = {"rank 0", "rank 1", "rank 2", "rank 3"};

TEST(LinkUtilizationMeter, GivesRateAndShareOfBusyTime) {
  LinkUtilizationMeter meter;
  for (int i = 0; i <= 5; ++i) {
    EXPECT_FALSE(meter.utilization() && i < 4);
    meter.sample(Seconds{i * 0.25}, i * 1000, i % 2 == 0);
  }
  const auto utilization = meter.utilization();
  ASSERT_TRUE(utilization);
  EXPECT_DOUBLE_EQ(utilization->rate.value, 4000);
  EXPECT_DOUBLE_EQ(utilization->busy, 0.5);
}

TEST(LinkUtilizationMeter, ForgetsOldSamples) {
  LinkUtilizationMeter meter;
  for (int i = 0; i < 100; ++i)
    meter.sample(Seconds{i * 0.2}, i < 50 ? 0 : (i - 50) * 200, i >= 50);
  ASSERT_TRUE(meter.utilization());
  EXPECT_NEAR(meter.utilization()->rate.value, 1000, 1e-6);
  EXPECT_DOUBLE_EQ(meter.utilization()->busy, 1);
}

TEST(SlowLink, IsTheOneThatAlwaysHasMoreToSend) {
  const auto verdict = find_slow_links(
      {{0, 1, {31e6}, 0.25}, {1, 2, {31e6}, 0.25}, {2, 3, {31e6}, 0.3}, {3, 0, {31e6}, 1.0}},
      kNames);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->ranks, ElementsAre(3));
  EXPECT_THAT(verdict->text, HasSubstr("the link from rank 3 to rank 0 is slow: it moves 31"));
}

TEST(SlowLink, IsNoneWhereAllAreBusyAlike) {
  EXPECT_FALSE(
      find_slow_links({{0, 1, {100e6}, 1.0}, {1, 2, {98e6}, 0.95}, {2, 0, {90e6}, 1.0}}, kNames));
}

TEST(SlowLink, IsNoneWhereNothingWaitsToBeSent) {
  EXPECT_FALSE(find_slow_links({{0, 1, {5e6}, 0.2}, {1, 0, {50e6}, 0.2}}, kNames));
}

TEST(SlowLink, NeedsAnotherToCompareWith) {
  EXPECT_FALSE(find_slow_links({{0, 1, {5e6}, 1.0}}, kNames));
}

}  // namespace
}  // namespace regatta::comm
