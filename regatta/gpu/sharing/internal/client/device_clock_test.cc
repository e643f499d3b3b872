#include "regatta/gpu/sharing/internal/client/device_clock.h"

#include <random>

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kStart = 1'000 * kMs;

TEST(DeviceClock, SaysWhenEventsWereReachedThoughTheyAreSeenLate) {
  std::mt19937_64 random(1);
  DeviceClock clock;
  std::uint64_t reached = kStart;
  for (int i = 0; i < 1000; ++i, reached += 100 * kUs) {
    const std::uint64_t late = 5 * kUs + random() % (300 * kUs);
    const std::uint64_t said = clock.reached(100 * kUs, reached + late);
    if (i < 50) continue;  // by then one was seen early
    EXPECT_GE(said, reached);
    EXPECT_LE(said, reached + 40 * kUs) << i;
  }
}

TEST(DeviceClock, NeverSaysThatAnEventIsYetToCome) {
  DeviceClock clock;
  EXPECT_EQ(clock.reached(std::nullopt, kStart), kStart);
  EXPECT_EQ(clock.reached(5 * kMs, kStart + kMs), kStart + kMs);
  EXPECT_EQ(clock.reached(5 * kMs, kStart + 3 * kMs), kStart + 3 * kMs);
}

TEST(DeviceClock, StartsAnewWhereTheTimeBetweenTwoEventsIsUnknownOrLong) {
  DeviceClock clock;
  clock.reached(std::nullopt, kStart);
  EXPECT_EQ(clock.reached(std::nullopt, kStart + kMs), kStart + kMs);
  EXPECT_EQ(clock.reached(2'000 * kMs, kStart + 2'100 * kMs), kStart + 2'100 * kMs);
}

TEST(DeviceClock, FollowsADeviceWhoseClockIsSlow) {
  DeviceClock clock;
  std::uint64_t reached = kStart;
  std::uint64_t said = 0;
  for (int i = 0; i < 20'000; ++i, reached += 100 * kUs)
    said = clock.reached(99'990, reached);  // 100 ppm
  EXPECT_NEAR(static_cast<double>(said), static_cast<double>(reached - 100 * kUs), 20.0 * kUs);
}

}  // namespace
}  // namespace regatta::sharing
