#include "regatta/platform/mixing/duty_profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr Seconds kInterval{300};
constexpr std::size_t kDay = 288;  // intervals

double mean_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double correlation(const std::vector<float>& a, const std::vector<float>& b) {
  const double mean_a = mean_of(a);
  const double mean_b = mean_of(b);
  double both = 0;
  double squares_a = 0;
  double squares_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean_a) * (b[i] - mean_b);
    squares_a += (a[i] - mean_a) * (a[i] - mean_a);
    squares_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return both / std::sqrt(squares_a * squares_b);
}

// Shares that leave room for the curve's peak.
DutyProfile random_profile(packing::RandomSequence& random, bool has_day) {
  DutyProfile profile;
  for (int i = 0; i < kDutyShares; ++i)
    profile.shares.push_back(static_cast<float>(0.5 * random.uniform() * random.uniform()));
  std::sort(profile.shares.begin(), profile.shares.end());
  if (!has_day) return profile;
  double sum = 0;
  for (int i = 0; i < 24; ++i) {
    profile.day.push_back(static_cast<float>(0.2 + random.uniform()));
    sum += profile.day.back();
  }
  for (float& part : profile.day)
    part = static_cast<float>(part * 24 / sum);
  return profile;
}

TEST(DutyProfile, AProfileOfADrawnSeriesIsTheOneItWasDrawnFrom) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    const DutyProfile profile = random_profile(random, false);
    // Less than a day, so that no curve is found in the noise, and each share as often.
    std::vector<float> series = draw_series(profile, 1, kInterval, seed);
    series.resize(8 * kDutyShares);
    const DutyProfile found = profile_of(series, kInterval, {});
    ASSERT_EQ(found.shares.size(), profile.shares.size());
    for (std::size_t i = 0; i < profile.shares.size(); ++i)
      EXPECT_NEAR(found.shares[i], profile.shares[i], 1e-5);
    EXPECT_NEAR(mean_share(found), mean_share(profile), 1e-6);
  }
}

TEST(DutyProfile, TheCurveOfADayComesBack) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    const DutyProfile profile = random_profile(random, true);
    const std::vector<float> series = draw_series(profile, 20, kInterval, seed);
    const DutyProfile found = profile_of(series, kInterval, {});
    ASSERT_EQ(found.day.size(), 24U);
    for (std::size_t i = 0; i < 24; ++i)
      EXPECT_NEAR(found.day[i], profile.day[i], 0.2 * profile.day[i]);
    EXPECT_NEAR(mean_share(found), mean_of(series), 0.01);
    EXPECT_NEAR(mean_share(found), mean_share(profile), 0.01);
    for (std::size_t i = 0; i < profile.shares.size(); ++i)
      EXPECT_NEAR(found.shares[i], profile.shares[i], 0.06);
  }
}

TEST(DutyProfile, ASeriesThatStartsLaterInTheDayHasTheSameCurve) {
  DutyProfile profile{.shares = {0.2F}, .day = {0.5F, 1.5F}};
  std::vector<float> series = draw_series(profile, 2, kInterval, 1);
  series.erase(series.begin(), series.begin() + 100);
  const DutyProfile found = profile_of(series, kInterval, kInterval * 100.0);
  ASSERT_EQ(found.day.size(), 24U);
  EXPECT_NEAR(found.day.front(), 0.5, 1e-4);
  EXPECT_NEAR(found.day.back(), 1.5, 1e-4);
  EXPECT_NEAR(mean_share(found, {6 * 3600.0}), 0.1, 1e-4);
  EXPECT_NEAR(mean_share(found, {18 * 3600.0}), 0.3, 1e-4);
  EXPECT_NEAR(mean_share(found, {-6 * 3600.0}), 0.3, 1e-4);
}

TEST(DutyProfile, LessThanADayHasNoCurve) {
  const std::vector<float> half(kDay / 2, 0.25F);
  const DutyProfile found = profile_of(half, kInterval, {});
  EXPECT_TRUE(found.day.empty());
  EXPECT_THAT(found.shares, testing::Each(testing::FloatEq(0.25F)));
  EXPECT_FALSE(profile_of({}, kInterval, {}).is_known());
  // A day without any demand has no curve either.
  const std::vector<float> idle(2 * kDay, 0);
  EXPECT_TRUE(profile_of(idle, kInterval, {}).day.empty());
  EXPECT_EQ(mean_share(profile_of(idle, kInterval, {})), 0);
}

TEST(DutyProfile, SeriesOfDifferentSeedsAreUncorrelated) {
  packing::RandomSequence random(9);
  const DutyProfile profile = random_profile(random, false);
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const auto a = draw_series(profile, 10, kInterval, seed);
    EXPECT_EQ(a, draw_series(profile, 10, kInterval, seed));
    EXPECT_LT(std::abs(correlation(a, draw_series(profile, 10, kInterval, seed + 1))), 0.08);
  }
}

TEST(DutyProfile, WhatIsNotKnownNeedsTheWholeDevice) {
  EXPECT_EQ(mean_share(DutyProfile{}), 1);
  EXPECT_EQ(mean_share(DutyProfile{}, {100}), 1);
  EXPECT_THAT(draw_series({}, 1, kInterval, 1), testing::Each(1.0F));
}

TEST(DutyProfile, WrongProfilesAreRefusedWithAReason) {
  EXPECT_TRUE(check_duty({}));
  EXPECT_TRUE(check_duty({.shares = {0, 0.5F, 1}, .day = {0, 2}}));
  EXPECT_EQ(check_duty({.shares = {0.5F, 0.4F}, .day = {}}).error().message,
            "the shares of its duty are not from 0 to 1, or do not rise; sort them");
  EXPECT_FALSE(check_duty({.shares = {0.5F, 1.1F}, .day = {}}));
  EXPECT_FALSE(check_duty({.shares = {NAN}, .day = {}}));
  EXPECT_FALSE(check_duty({.shares = {0.5F}, .day = {-1}}));
  EXPECT_FALSE(check_duty({.shares = {0.5F}, .day = {INFINITY}}));
  EXPECT_FALSE(check_duty({.shares = {0.5F}, .day = std::vector<float>(kDayPartsMax + 1, 1)}));
  EXPECT_EQ(check_duty({.shares = {}, .day = {1}}).error().message,
            "its duty has a day and no shares; give shares");
  EXPECT_TRUE(check_duty({.shares = {0.5F}, .day = {0.33F, 0.33F, 2.33F}}));  // rounded
  EXPECT_EQ(check_duty({.shares = {0.5F}, .day = {2, 4}}).error().message,
            "the parts of the day of its duty have the mean 3, and not 1; divide each by their "
            "mean");
  EXPECT_EQ(check_duty({.shares = {0.5F}, .day = {0, 0}}).error().message,
            "all parts of the day of its duty are 0; leave the day out");
}

}  // namespace
}  // namespace regatta::mixing
