#include "regatta/gpu/sharing/internal/client/token_bucket.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

struct Grant {
  std::uint64_t at_ns;
  std::uint64_t units;
};

// Gives pieces as fast as the pace allows, until `end_ns`.
std::vector<Grant> grant_always(std::uint64_t rate, std::uint64_t most, std::uint64_t end_ns,
                                std::mt19937_64& random) {
  TokenBucket bucket;
  std::vector<Grant> grants;
  std::uniform_int_distribution<std::uint64_t> piece(1, most);
  for (std::uint64_t now = 1; now < end_ns;) {
    if (const std::uint64_t wait = bucket.wait_ns(rate, now); wait > 0) {
      now += wait;
      continue;
    }
    grants.push_back({now, piece(random)});
    bucket.grant(grants.back().units);
    now += 100;  // giving takes time, too
  }
  return grants;
}

TEST(TokenBucket, NoWindowHasMoreThanTheRateAndWhatMayBeAhead) {
  std::mt19937_64 random(7);
  for (const std::uint64_t rate : {1'000'000ULL, 25'000'000'000ULL}) {
    for (const std::uint64_t most : {rate / 100'000, rate / 100, rate / 2}) {
      const auto grants = grant_always(rate, most, 3 * kSecondNs, random);
      for (std::size_t first = 0; first < grants.size(); first += 1 + grants.size() / 50) {
        std::uint64_t sum = 0;
        for (std::size_t last = first; last < grants.size(); ++last) {
          sum += grants[last].units;
          const auto window = static_cast<double>(grants[last].at_ns - grants[first].at_ns);
          const double due = static_cast<double>(rate) * (window + kBurstNs) * 1e-9;
          ASSERT_LE(static_cast<double>(sum), due + static_cast<double>(most) + 1);
        }
      }
    }
  }
}

TEST(TokenBucket, GrantsTheRateToASteadyUser) {
  std::mt19937_64 random(8);
  for (const std::uint64_t rate : {1'000'000ULL, 3'333'333ULL, 25'000'000'000ULL}) {
    std::uint64_t sum = 0;
    for (const Grant& grant : grant_always(rate, rate / 1000, 2 * kSecondNs, random))
      sum += grant.units;
    EXPECT_NEAR(static_cast<double>(sum), 2.0 * static_cast<double>(rate),
                0.02 * static_cast<double>(rate));
  }
}

TEST(TokenBucket, OneWithoutALimitNeverWaits) {
  TokenBucket bucket;
  for (std::uint64_t now = 0; now < 100; ++now) {
    EXPECT_EQ(bucket.wait_ns(0, now), 0U);
    bucket.grant(1ULL << 40);
  }
  // A limit that comes later does not ask for what was given before it.
  EXPECT_EQ(bucket.wait_ns(0, 100), 0U);
  EXPECT_EQ(bucket.wait_ns(1000, 100), 0U);
}

TEST(TokenBucket, ANewRateHoldsAtOnce) {
  TokenBucket bucket;
  bucket.grant(1000);
  const std::uint64_t slow = bucket.wait_ns(100, 1);
  EXPECT_NEAR(static_cast<double>(slow), 10e9 - 0.01e9, 10);
  EXPECT_NEAR(static_cast<double>(bucket.wait_ns(1000, 1)), 1e9 - 0.01e9, 10);
  EXPECT_EQ(bucket.wait_ns(1000, 1 + kSecondNs), 0U);
}

TEST(TokenBucket, AClockThatStandsOrGoesBackIsNoTime) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.wait_ns(1000, 5 * kSecondNs), 0U);
  bucket.grant(1000);
  const std::uint64_t wait = bucket.wait_ns(1000, 5 * kSecondNs);
  EXPECT_EQ(bucket.wait_ns(1000, 4 * kSecondNs), wait);
  EXPECT_EQ(bucket.wait_ns(1000, 5 * kSecondNs), wait);
}

TEST(TokenBucket, PiecesAreAsLongAsWhatMayBeAhead) {
  EXPECT_EQ(rate_limited_piece(1'000'000'000, 1), 10'000'000U);
  EXPECT_EQ(rate_limited_piece(1000, 4096), 4096U);
}

}  // namespace
}  // namespace regatta::sharing
