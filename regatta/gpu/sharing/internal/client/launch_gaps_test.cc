#include "regatta/gpu/sharing/internal/client/launch_gaps.h"

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000'000;

// How long the turn is kept by a process that works and is idle by turns.
std::uint64_t kept(std::uint64_t work_ns, std::uint64_t gap_ns) {
  LaunchGaps gaps;
  std::uint64_t now = kMs;
  for (int i = 0; i < 40; ++i) {
    gaps.begin(now);
    now += work_ns;
    gaps.end(now);
    now += gap_ns;
  }
  return gaps.keep_ns();
}

TEST(LaunchGaps, KeepTheTurnOverShortWaits) {
  for (const std::uint64_t gap : {10 * kUs, 60 * kUs, 140 * kUs})
    EXPECT_GT(kept(50 * kUs, gap), 2 * gap) << gap;
  EXPECT_GT(kept(5 * kMs, kMs), kMs);
}

TEST(LaunchGaps, LeaveLongGapsToOthers) {
  EXPECT_LE(kept(2 * kMs, 6 * kMs), 100 * kUs);
  EXPECT_LE(kept(50 * kUs, 400 * kUs), 100 * kUs);
  EXPECT_LE(kept(100 * kMs, 20 * kMs), 1'500 * kUs);
}

TEST(LaunchGaps, LearnThatAProcessHasBegunToWaitLonger) {
  LaunchGaps gaps;
  std::uint64_t now = kMs;
  for (int i = 0; i < 60; ++i) {
    gaps.begin(now);
    now += kMs;
    gaps.end(now);
    EXPECT_TRUE(gaps.is_idle());
    now += i < 30 ? 50 * kUs : 5 * kMs;
  }
  EXPECT_LE(gaps.keep_ns(), 100 * kUs);
}

}  // namespace
}  // namespace regatta::sharing
