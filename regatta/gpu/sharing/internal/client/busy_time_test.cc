#include "regatta/gpu/sharing/internal/client/busy_time.h"

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kStart = 1'000 * kMs;

TEST(BusyTime, OfOneStreamIsWhatItsWorkTook) {
  BusyTime busy;
  busy.begin_period(kStart);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i <= 1000; ++i)
    sum += busy.add(100 * kUs, kStart + i * 100 * kUs + (i * 37 % 50) * kUs);  // seen late or later
  EXPECT_NEAR(static_cast<double>(sum), 100.0 * kMs, 0.1 * kMs);
  EXPECT_NEAR(static_cast<double>(busy.concurrency()) / BusyTime::kOne, 1, 0.05);
}

TEST(BusyTime, OfStreamsThatWorkAtOnceCountsOnce) {
  BusyTime busy;
  busy.begin_period(kStart);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i <= 1000; ++i)
    for (int stream = 0; stream < 4; ++stream)
      sum += busy.add(100 * kUs, kStart + i * 100 * kUs);
  EXPECT_NEAR(static_cast<double>(sum), 100.0 * kMs, 0.5 * kMs);
  EXPECT_NEAR(static_cast<double>(busy.concurrency()) / BusyTime::kOne, 4, 0.1);
}

TEST(BusyTime, DoesNotCountPausesBetweenPeriods) {
  BusyTime busy;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    busy.begin_period(kStart + i * 10 * kMs);
    for (int stream = 0; stream < 4; ++stream)
      sum += busy.add(kMs, kStart + (i * 10 + 1) * kMs);
  }
  EXPECT_EQ(sum, 100 * kMs);
}

TEST(BusyTime, DoesNotChargeWhatStreamsDidAtOnceToAPauseLater) {
  BusyTime busy;
  std::uint64_t sum = 0;
  busy.begin_period(kStart - 10 * kMs);
  for (int i = 0; i < 8; ++i)
    sum += busy.add(10 * kMs, kStart);
  EXPECT_EQ(sum, 10 * kMs);
  sum += busy.add(1 * kMs, kStart + 50 * kMs);
  EXPECT_LT(sum, 12 * kMs);
}

TEST(BusyTime, OfWorkWhoseEndsAreSeenAllAtOnceIsWhatItTook) {
  BusyTime busy;
  busy.begin_period(kStart);
  std::uint64_t sum = 0;
  for (int i = 0; i < 10; ++i)
    sum += busy.add(kMs, kStart + 11 * kMs);
  EXPECT_EQ(sum, 10 * kMs);
}

TEST(BusyTime, ComesBackToOneStreamAfterMany) {
  BusyTime busy;
  std::uint64_t now = kStart;
  busy.begin_period(now);
  for (int i = 0; i < 1000; ++i, now += 100 * kUs)
    for (int stream = 0; stream < 8; ++stream)
      busy.add(100 * kUs, now);
  EXPECT_GT(busy.concurrency(), 7 * BusyTime::kOne);
  for (int i = 0; i < 1000; ++i, now += 100 * kUs)
    busy.add(100 * kUs, now);
  EXPECT_NEAR(static_cast<double>(busy.concurrency()) / BusyTime::kOne, 1, 0.05);
}

}  // namespace
}  // namespace regatta::sharing
