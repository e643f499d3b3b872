#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"

namespace regatta::os {
namespace {

// A counter of 2.5 GHz that stood at 10^9 when the clock showed 100 s.
constexpr double kTicksPerSecond = 2.5e9;
std::uint64_t ticks_at(double seconds) {
  return 1'000'000'000 + static_cast<std::uint64_t>((seconds - 100) * kTicksPerSecond);
}
void compare(TickClock& clock, double seconds) {
  clock.compare(ticks_at(seconds), Seconds{seconds}, ticks_at(seconds) + 50);
}

TEST(TickClock, TellsNothingBeforeItKnowsTheRate) {
  TickClock clock;
  EXPECT_TRUE(clock.is_due(ticks_at(100)));
  compare(clock, 100);
  EXPECT_TRUE(clock.is_due(ticks_at(100.00001)));
  compare(clock, 100.00001);  // too soon after the first to tell the rate
  EXPECT_TRUE(clock.is_due(ticks_at(100.00002)));
}

TEST(TickClock, TellsTheTimeForAWhileAfterTwoComparisons) {
  TickClock clock;
  compare(clock, 100);
  compare(clock, 100.0002);
  ASSERT_FALSE(clock.is_due(ticks_at(100.001)));
  EXPECT_NEAR(clock.at(ticks_at(100.001)).value, 100.001, 1e-6);
  EXPECT_TRUE(clock.is_due(ticks_at(100.01)));
}

TEST(TickClock, IsDueAfterTwentyMillisecondsAtTheLatest) {
  TickClock clock;
  compare(clock, 100);
  compare(clock, 200);
  EXPECT_FALSE(clock.is_due(ticks_at(200.019)));
  EXPECT_TRUE(clock.is_due(ticks_at(200.021)));
}

TEST(TickClock, LeavesOutAComparisonThatWasInterrupted) {
  TickClock clock;
  compare(clock, 100);
  compare(clock, 100.001);
  clock.compare(ticks_at(100.002), Seconds{100.005}, ticks_at(100.005));
  EXPECT_NEAR(clock.at(ticks_at(100.003)).value, 100.003, 1e-6);
}

TEST(TickClock, StartsAnewWhereTheCounterWentBack) {
  TickClock clock;
  compare(clock, 200);
  compare(clock, 200.001);
  EXPECT_TRUE(clock.is_due(ticks_at(150)));
  clock.compare(ticks_at(150), Seconds{300}, ticks_at(150) + 50);
  EXPECT_TRUE(clock.is_due(ticks_at(150.0001)));
}

TEST(TickNow, IsTheMonotonicClock) {
  // An attempt that is interrupted between the two readings is repeated.
  double off = 1;
  for (int tries = 0; tries < 100 && off > 2e-6; ++tries) {
    sleep_for(Seconds{200e-6});
    const Seconds before = monotonic_now();
    const Seconds told = tick_now();
    const Seconds after = monotonic_now();
    off = std::max(before.value - told.value, told.value - after.value);
  }
  EXPECT_LT(off, 2e-6);
}

}  // namespace
}  // namespace regatta::os
