#include "regatta/gpu/sharing/internal/client/kernel_durations.h"

#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// The duration learned from `samples` of a kernel of `took_ns` that sometimes waited up to 0.6 ms.
std::uint64_t learned_behind_others(std::uint64_t took_ns, int samples, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::uint64_t> wait(0, 600'000);
  KernelDurations::Entry entry;
  for (int i = 0; i < samples; ++i)
    KernelDurations::learn(entry, took_ns + (i % 3 == 0 ? 0 : wait(random)), true);
  return entry.cost_ns;
}

TEST(KernelDurations, FollowWhatIsMeasuredBothWays) {
  KernelDurations::Entry entry;
  KernelDurations::learn(entry, 5 * kMs, false);
  EXPECT_EQ(entry.cost_ns, 5 * kMs);
  for (int i = 0; i < 120; ++i)
    KernelDurations::learn(entry, 6 * kMs, false);
  EXPECT_NEAR(static_cast<double>(entry.cost_ns), 6e6, 1e4);
  for (int i = 0; i < 120; ++i)
    KernelDurations::learn(entry, 2 * kMs, false);
  EXPECT_NEAR(static_cast<double>(entry.cost_ns), 2e6, 1e4);
}

TEST(KernelDurations, OfWhatWaitsForOthersNowAndThenAreWithoutTheWait) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto learned = static_cast<double>(learned_behind_others(5 * kMs, 60, seed));
    EXPECT_GE(learned, 5e6);
    EXPECT_LE(learned, 5.2e6) << "seed " << seed;
  }
}

TEST(KernelDurations, OfAKernelThatBecameMuchLongerGrowEvenIfItMayHaveWaited) {
  KernelDurations::Entry entry;
  KernelDurations::learn(entry, 5 * kMs, true);
  for (int i = 0; i < 40; ++i)
    KernelDurations::learn(entry, 20 * kMs, true);
  EXPECT_GE(entry.cost_ns, 19 * kMs);
  EXPECT_LE(entry.cost_ns, 20 * kMs);
}

TEST(KernelDurations, OfWhatNobodyKnowsAreTakenForLongerWithEachLaunchAndAllAreTimed) {
  KernelDurations::Entry entry;
  std::uint64_t in_flight = 0;
  int launches = 0;
  while (in_flight < 20 * kMs && launches < 100) {
    in_flight += entry.cost_ns;
    ++launches;
    EXPECT_TRUE(KernelDurations::is_to_be_timed(entry));
  }
  EXPECT_EQ(launches, 3);
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(KernelDurations::is_to_be_timed(entry));
  EXPECT_EQ(entry.cost_ns, KernelDurations::kUnknownMostNs);
  KernelDurations::learn(entry, 5 * kMs, false);
  EXPECT_EQ(entry.cost_ns, 5 * kMs);
  static_cast<void>(KernelDurations::is_to_be_timed(entry));
  EXPECT_EQ(entry.cost_ns, 5 * kMs);
}

// A pattern of lengths cannot keep its long kernels, or its short ones, out of the samples.
TEST(KernelDurations, AreTimedAtRandomInWhateverOrderLengthsCome) {
  for (const unsigned period : {2U, 8U, 64U, 256U}) {
    const auto durations = std::make_unique<KernelDurations>(period);
    KernelDurations::Entry& entry = durations->find(17);
    KernelDurations::learn(entry, kMs, false);
    for (unsigned i = 0; i < KernelDurations::kFirst; ++i)
      static_cast<void>(KernelDurations::is_to_be_timed(entry));
    std::vector<int> timed(period);
    const int launches = 400 * static_cast<int>(period);
    int all = 0;
    for (int i = 0; i < launches; ++i) {
      const bool is_timed = KernelDurations::is_to_be_timed(entry);
      timed[static_cast<unsigned>(i) % period] += is_timed ? 1 : 0;
      all += is_timed ? 1 : 0;
    }
    EXPECT_NEAR(all, launches / 4.0, launches / 40.0) << period;
    for (const int count : timed)
      EXPECT_NEAR(count, 100, 50) << period;
  }
}

TEST(KernelDurations, OfWhatHasGoneAreForgottenAndItsLaunchesStillCount) {
  const auto durations = std::make_unique<KernelDurations>();
  KernelDurations::Entry& entry = durations->find(17);
  EXPECT_TRUE(KernelDurations::is_to_be_timed(entry));
  KernelDurations::learn(entry, 3 * kMs, false);
  durations->forget(17);
  EXPECT_EQ(durations->find(17).cost_ns, KernelDurations::kUnknownNs);
  EXPECT_EQ(durations->launches(), 1U);
}

}  // namespace
}  // namespace regatta::sharing
