#include "regatta/platform/mixing/demand_forecast.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>

#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"
#include "regatta/platform/mixing/duty_tables.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

const std::filesystem::path kTrace =
    std::filesystem::path(REGATTA_TESTDATA "/../../../../../shared/data/cluster/gentd")
        .lexically_normal();

// Minutes of days that rise and fall, with noise.
std::vector<double> days(int count, double noise, std::uint64_t seed) {
  packing::RandomSequence random(seed);
  std::vector<double> demand;
  for (int t = 0; t < count * 1440; ++t) {
    const double phase = 2 * std::numbers::pi * t / 1440;
    demand.push_back((10 - 9 * std::cos(phase)) * (1 + noise * (random.uniform() - 0.5)));
  }
  return demand;
}

double share_below(const std::vector<double>& demand, const std::vector<double>& forecasts,
                   std::size_t lead, std::size_t first) {
  double below = 0;
  double count = 0;
  for (std::size_t t = first; t + lead < demand.size(); ++t, ++count)
    below += *std::max_element(demand.begin() + static_cast<std::ptrdiff_t>(t + 1),
                               demand.begin() + static_cast<std::ptrdiff_t>(t + lead + 1)) <=
                     forecasts[t]
                 ? 1
                 : 0;
  return below / count;
}

TEST(ForecastSeries, HoldsItsQuantile) {
  for (const double quantile : {0.8, 0.95}) {
    const std::vector<double> demand = days(3, 0.5, 1);
    const std::vector<double> forecasts =
        forecast_series(demand, {.lead = 10, .quantile = quantile});
    EXPECT_NEAR(share_below(demand, forecasts, 10, 300), quantile, 0.05);
  }
}

TEST(ForecastSeries, UsesNothingThatComesLater) {
  std::vector<double> demand = days(2, 0.3, 2);
  const std::vector<double> forecasts = forecast_series(demand, {});
  for (std::size_t t = 1500; t < demand.size(); ++t)
    demand[t] = 1000;
  const std::vector<double> changed = forecast_series(demand, {});
  for (std::size_t t = 0; t < 1500; ++t)
    ASSERT_EQ(forecasts[t], changed[t]) << t;
}

TEST(ForecastSeries, ADayThatWasSeenMakesTheNextOneMoreCertain) {
  std::vector<double> demand = days(3, 0.05, 3);
  // A step that no trend foretells, at the same minute of each day.
  for (std::size_t t = 0; t < demand.size(); ++t)
    demand[t] += t % 1440 >= 600 && t % 1440 < 700 ? 30 : 0;
  const std::vector<double> forecasts = forecast_series(demand, {.lead = 20});
  const std::size_t before_step = 2 * 1440 + 590;
  EXPECT_GT(forecasts[before_step], 40);
  const std::vector<double> unaware = forecast_series(demand, {.lead = 20, .day = 100'000});
  EXPECT_LT(unaware[before_step], 40);
}

TEST(LatestForecasts, AreTheLastOfTheSeriesForEveryLengthOfHistory) {
  const std::vector<double> demand = days(3, 0.4, 5);
  for (const ForecastOptions& options :
       {ForecastOptions{}, ForecastOptions{.lead = 20, .quantile = 0.99, .error_window = 30},
        ForecastOptions{.lead = 2, .level_window = 1, .trend_window = 3, .day = 500}}) {
    const std::vector<double> all = forecast_series(demand, options);
    for (const std::size_t seen : {0, 1, 22, 24, 25, 26, 40, 41, 270, 501, 1441, 1700, 4320}) {
      const std::span<const double> history(demand.data(), seen);
      for (const std::size_t count : {1, 15, 300}) {
        const std::vector<double> latest =
            latest_forecasts(history, options, static_cast<int>(count));
        ASSERT_EQ(latest.size(), std::min(seen, count));
        for (std::size_t i = 0; i < latest.size(); ++i)
          ASSERT_EQ(latest[i], all[seen - latest.size() + i]) << seen << " " << count << " " << i;
      }
    }
  }
}

TEST(ForecastOptions, LastAsLongForIntervalsOfAnyLength) {
  const ForecastOptions minutes = forecast_options({60}, {120}, 0.99);
  EXPECT_EQ(minutes.lead, 2);
  EXPECT_EQ(minutes.level_window, ForecastOptions{}.level_window);
  EXPECT_EQ(minutes.trend_window, ForecastOptions{}.trend_window);
  EXPECT_EQ(minutes.day, ForecastOptions{}.day);
  const ForecastOptions long_ones = forecast_options({300}, {120}, 0.9);
  EXPECT_EQ(long_ones.lead, 1);
  EXPECT_EQ(long_ones.level_window, 3);
  EXPECT_EQ(long_ones.trend_window, 6);
  EXPECT_EQ(long_ones.day, 288);
  EXPECT_EQ(forecast_options({0.1}, {0.3}, 0.9).lead, 3);
  EXPECT_EQ(forecast_options({1e-9}, {1e9}, 0.9).lead, 1'000'000);
}

TEST(ReplayTidal, LendsByNightAndHasItsDevicesBackBeforeTheRamp) {
  TidalOptions options;
  options.forecast.lead = 10;
  options.devices = 20;
  const auto use = replay_tidal(days(3, 0.2, 4), options, 0.01);
  ASSERT_TRUE(use) << use.error().message;
  EXPECT_LT(use->missed_share, 0.01);
  EXPECT_GT(use->lent_share, 0.6 * use->lent_share_of_oracle);
  EXPECT_LE(use->lent_share, use->lent_share_of_oracle);
  EXPECT_GT(use->reclaims, 20);
}

TEST(ReplayTidal, AJumpThatNothingForetellsIsMissedForTheLead) {
  std::vector<double> demand(600, 1.5);
  for (std::size_t t = 400; t < demand.size(); ++t)
    demand[t] = 10;
  TidalOptions options;
  options.devices = 10;
  const auto use = replay_tidal(demand, options, 0.01);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->ramps, 1);
  EXPECT_EQ(use->missed_ramps, 1);
  EXPECT_GE(use->missed_share * use->intervals, options.forecast.lead);
  EXPECT_LE(use->missed_share * use->intervals, options.forecast.lead + 3);
  // 8 devices are free for 400 intervals, and reclaiming them takes the lead.
  EXPECT_NEAR(use->lent_share_of_oracle * use->intervals * 10, 8 * (400 - 5), 1e-6);
}

TEST(ReplayTidal, OptionsOutOfRangeAreRefused) {
  const std::vector<double> demand(10, 1);
  EXPECT_FALSE(replay_tidal({}, {}, 0.01));
  EXPECT_FALSE(replay_tidal(demand, {.demand_per_device = 0}, 0.01));
  EXPECT_FALSE(replay_tidal(demand, {.forecast = {.lead = 0}}, 0.01));
  EXPECT_FALSE(replay_tidal(demand, {.forecast = {.quantile = 1}}, 0.01));
}

TEST(ReplayTidal, NoRampOfThePublicTraceFindsTooFewDevices) {
  if (!std::filesystem::exists(kTrace)) GTEST_SKIP() << "no " << kTrace;
  const auto requests = read_requests(read_test_file(kTrace / "qps_1min.csv"), "qps_1min.csv");
  ASSERT_TRUE(requests);
  TidalOptions options;
  options.devices = 20;
  options.forecast.quantile = 0.99;
  options.demand_per_device = *std::max_element(requests->begin(), requests->end()) / 20;
  const auto use = replay_tidal(*requests, options, 0.01);
  ASSERT_TRUE(use);
  EXPECT_GT(use->ramps, 10);
  EXPECT_EQ(use->missed_ramps, 0);
  EXPECT_LE(use->missed_share, 0.01);
  EXPECT_GT(use->lent_share, 0.5 * use->lent_share_of_oracle);
}

}  // namespace
}  // namespace regatta::mixing
