#include "regatta/platform/api/rate_limits.h"

#include <string>

#include <gmock/gmock.h>

namespace regatta::api {
namespace {

TEST(TokenBuckets, LetABurstPassAndThenTheRate) {
  TokenBuckets buckets({.per_second = 10, .burst = 3});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(buckets.take("ada", Seconds{5}).value, 0);
  EXPECT_NEAR(buckets.take("ada", Seconds{5}).value, 0.1, 1e-9);
  EXPECT_EQ(buckets.take("eve", Seconds{5}).value, 0);
  EXPECT_NEAR(buckets.take("ada", Seconds{5.05}).value, 0.05, 1e-9);
  EXPECT_EQ(buckets.take("ada", Seconds{5.1001}).value, 0);
  int taken = 0;
  for (int i = 0; i < 1000; ++i)
    taken += buckets.take("ada", Seconds{6 + i * 0.01}).value == 0 ? 1 : 0;
  EXPECT_NEAR(taken, 100 + 3, 2);
}

TEST(TokenBuckets, WithoutARateTakeAll) {
  TokenBuckets buckets({.per_second = 0, .burst = 1});
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(buckets.take("ada", Seconds{0}).value, 0);
}

TEST(TokenBuckets, HoldABoundedNumberOfKeysAndLimitTheOthersTogether) {
  TokenBuckets buckets({.per_second = 1, .burst = 2}, 10);
  int taken = 0;
  for (int i = 0; i < 1000; ++i)
    taken += buckets.take(std::to_string(i), Seconds{0}).value == 0 ? 1 : 0;
  EXPECT_LE(buckets.size(), 11U);
  EXPECT_LE(taken, 12);
  // Full buckets make room.
  EXPECT_EQ(buckets.take("late", Seconds{100}).value, 0);
  EXPECT_LE(buckets.size(), 11U);
}

TEST(NetworkOf, IsWhatOneClientCannotChoose) {
  EXPECT_EQ(network_of("10.0.0.7"), "10.0.0.7");
  EXPECT_EQ(network_of("2001:db8:1:2:3:4:5:6"), network_of("2001:db8:1:2:ffff::1"));
  EXPECT_NE(network_of("2001:db8:1:2:3:4:5:6"), network_of("2001:db8:1:3:3:4:5:6"));
  EXPECT_EQ(network_of("2001:db8::1"), network_of("2001:db8:0:0:7::"));
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("10.127.0.0"));
}

}  // namespace
}  // namespace regatta::api
