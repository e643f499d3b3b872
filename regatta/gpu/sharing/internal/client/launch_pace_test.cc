#include "regatta/gpu/sharing/internal/client/launch_pace.h"

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

TEST(LaunchPace, LeavesWorkAloneThatTakesAboutAsLongAsItWasLearnedToTake) {
  LaunchPace pace;
  for (const std::uint64_t took : {kMs / 2, kMs, 2 * kMs, 3 * kMs})
    pace.learn(kMs, took);
  EXPECT_EQ(pace.stretch(), LaunchPace::kOne);
}

TEST(LaunchPace, SlowsAtOnceWhatTakesManyTimesLongerAndForgetsItSlowly) {
  LaunchPace pace;
  pace.learn(kMs, 80 * kMs);
  EXPECT_EQ(pace.stretch(), 20 * LaunchPace::kOne);
  pace.learn(kMs, kMs);
  EXPECT_GT(pace.stretch(), 19 * LaunchPace::kOne);
  for (int i = 0; i < 1000; ++i)
    pace.learn(kMs, kMs);
  EXPECT_EQ(pace.stretch(), LaunchPace::kOne);
}

TEST(LaunchPace, LearnsNothingFromSpansThatAreShortBesideALaunch) {
  LaunchPace pace;
  pace.learn(1'000, 100'000);
  EXPECT_EQ(pace.stretch(), LaunchPace::kOne);
}

}  // namespace
}  // namespace regatta::sharing
