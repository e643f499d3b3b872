#include "regatta/app/cli/internal/hang_watch.h"

#include <gtest/gtest.h>

namespace regatta::cli {
namespace {

constexpr HangLimits kLimits{.first = Seconds{10}, .between = Seconds{2}};

// The first time at which it says so, with looks every 0.4 s.
double found_hanging(HangWatch& watch, std::uint64_t beats, double from) {
  for (double now = from; now < from + 100; now += 0.4)
    if (watch.hangs(beats, Seconds{now})) return now;
  return -1;
}

TEST(HangWatch, WaitsForTheFirstBeatAndThenForEachFurtherOne) {
  HangWatch watch(kLimits, Seconds{100});
  EXPECT_NEAR(found_hanging(watch, 0, 100), 110.2, 0.3);
  watch.restart(Seconds{200});
  EXPECT_NEAR(watch.silence().value, 0, 1e-9);
  for (int i = 1; i < 50; ++i)
    EXPECT_FALSE(watch.hangs(static_cast<std::uint64_t>(i), Seconds{200 + 0.4 * i}));
  EXPECT_NEAR(found_hanging(watch, 49, 220), 221.8, 0.3);
  EXPECT_FALSE(watch.hangs(50, Seconds{223})) << "it goes on";
}

// Both were stopped, or the machine slept.
TEST(HangWatch, CountsATimeInWhichNobodyLookedAsHalfASecond) {
  HangWatch watch(kLimits, Seconds{0});
  EXPECT_FALSE(watch.hangs(1, Seconds{0.4}));
  EXPECT_FALSE(watch.hangs(1, Seconds{3600}));
  EXPECT_NEAR(watch.silence().value, 0.5, 1e-9);
}

TEST(HangWatch, TakesAnotherLimitFromNowOn) {
  HangWatch watch(kLimits, Seconds{0});
  EXPECT_GT(found_hanging(watch, 1, 0), 0);
  watch.set_limit(Seconds{3});
  EXPECT_NEAR(found_hanging(watch, 1, 2.4), 5.4, 0.3);
  watch.restart(Seconds{10});
  EXPECT_NEAR(found_hanging(watch, 0, 10), 13.2, 0.3) << "before its first beat too";
}

}  // namespace
}  // namespace regatta::cli
