#include "regatta/gpu/sharing/internal/policy/share.h"

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

using testing::ElementsAre;
using Requests = std::vector<regatta_share_request>;

std::vector<unsigned> shares(regatta_share_policy policy, const Requests& tenants) {
  std::vector<unsigned> parts(tenants.size());
  regatta_compute_shares(policy, tenants.data(), static_cast<unsigned>(tenants.size()),
                         parts.data());
  return parts;
}

constexpr regatta_share_request idle(unsigned quota, unsigned weight = 1) {
  return {.quota_ppm = quota, .weight = weight, .present = 1, .runnable = 0};
}
constexpr regatta_share_request busy(unsigned quota, unsigned weight = 1) {
  return {.quota_ppm = quota, .weight = weight, .present = 1, .runnable = 1};
}
constexpr regatta_share_request absent(unsigned quota, unsigned weight = 1) {
  return {.quota_ppm = quota, .weight = weight, .present = 0, .runnable = 0};
}

TEST(Shares, FixedGivesEachItsQuotaAndLeavesTheRestIdle) {
  EXPECT_THAT(shares(REGATTA_SHARE_FIXED, {busy(300'000), idle(200'000), absent(500'000)}),
              ElementsAre(300'000, 200'000, 0));
}

TEST(Shares, EqualDividesAmongThosePresent) {
  EXPECT_THAT(shares(REGATTA_SHARE_EQUAL, {busy(0, 7), idle(0), absent(0), busy(0)}),
              ElementsAre(333'333, 333'333, 0, 333'333));
}

// Huawei's example of its weighted policy: 5, 5 and 10 % become 25, 25 and 50.
TEST(Shares, WeightDividesByWeightAmongThosePresent) {
  EXPECT_THAT(shares(REGATTA_SHARE_WEIGHT, {busy(0, 5), busy(0, 5), idle(0, 10)}),
              ElementsAre(250'000, 250'000, 500'000));
}

// And of its weak one: when one of three is idle, the others have half each.
TEST(Shares, BurstWeightDividesAmongThoseThatHaveWork) {
  EXPECT_THAT(shares(REGATTA_SHARE_BURST_WEIGHT, {busy(100'000), busy(100'000), idle(100'000)}),
              ElementsAre(500'000, 500'000, 0));
}

TEST(Shares, BurstWeightNeverGoesBelowAQuota) {
  EXPECT_THAT(shares(REGATTA_SHARE_BURST_WEIGHT, {busy(600'000, 1), busy(0, 3), busy(0, 1)}),
              ElementsAre(600'000, 300'000, 100'000));
}

TEST(Shares, QuotasBeyondTheWholeAreScaledDownAlike) {
  const Requests tenants = {busy(900'000), busy(600'000)};
  EXPECT_THAT(shares(REGATTA_SHARE_FIXED, tenants), ElementsAre(600'000, 400'000));
  const std::vector<unsigned> burst = shares(REGATTA_SHARE_BURST_WEIGHT, tenants);
  EXPECT_THAT(burst, ElementsAre(600'000, 400'000));
}

std::uint64_t quota_sum(const Requests& tenants) {
  std::uint64_t sum = 0;
  for (const regatta_share_request& tenant : tenants)
    sum += tenant.quota_ppm;
  return sum;
}

TEST(Shares, OfRandomTenantsNeverExceedTheWholeNorMissAFloor) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    Requests tenants(1 + random() % 16);
    for (regatta_share_request& one : tenants) {
      one.quota_ppm = random() % 3 == 0 ? 0 : static_cast<unsigned>(random() % 300'000);
      one.weight = static_cast<unsigned>(random() % 5);
      one.present = random() % 4 != 0;
      one.runnable = one.present && random() % 2 == 0;
    }
    for (const auto policy : {REGATTA_SHARE_FIXED, REGATTA_SHARE_EQUAL, REGATTA_SHARE_WEIGHT,
                              REGATTA_SHARE_BURST_WEIGHT}) {
      const std::vector<unsigned> parts = shares(policy, tenants);
      const unsigned sum = std::accumulate(parts.begin(), parts.end(), 0U);
      ASSERT_LE(sum, 1'000'000U) << round;
      bool is_any = false;
      for (std::size_t i = 0; i < tenants.size(); ++i) {
        const bool is_burst = policy == REGATTA_SHARE_BURST_WEIGHT;
        const bool counts = is_burst ? tenants[i].runnable : tenants[i].present;
        is_any = is_any || counts;
        if (!counts) {
          ASSERT_EQ(parts[i], 0U) << round;
        }
        if (counts && is_burst && quota_sum(tenants) <= REGATTA_WHOLE_PPM) {
          ASSERT_GE(parts[i], tenants[i].quota_ppm) << round;
        }
      }
      // Only rounding is lost, but by fixed quotas.
      if (is_any && policy != REGATTA_SHARE_FIXED) {
        ASSERT_GE(sum + tenants.size(), 1'000'000U) << round;
      }
    }
  }
}

}  // namespace
}  // namespace regatta::sharing
