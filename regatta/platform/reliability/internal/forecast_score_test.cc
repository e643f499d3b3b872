#include "regatta/platform/reliability/internal/forecast_score.h"

#include <gtest/gtest.h>

#include "regatta/platform/packing/random_sequence.h"

namespace regatta::reliability {
namespace {

TEST(ScoreForecasts, GivesAPerfectForecastAllOfThem) {
  std::vector<Forecast> forecasts(100, {0, false});
  forecasts[3] = {1, true};
  const ForecastScore score = score_forecasts(forecasts);
  EXPECT_DOUBLE_EQ(score.auc, 1);
  EXPECT_DOUBLE_EQ(score.top_percent.precision, 1);
  EXPECT_DOUBLE_EQ(score.top_percent.recall, 1);
  EXPECT_DOUBLE_EQ(score.top_percent.lift, 100);
  EXPECT_DOUBLE_EQ(score.brier, 0);
  EXPECT_DOUBLE_EQ(score.brier_skill, 1);
}

TEST(ScoreForecasts, GivesNoSkillToTheBaseRate) {
  std::vector<Forecast> forecasts(1000, {0.02, false});
  for (std::size_t i = 0; i < 20; ++i)
    forecasts[i].has_failed = true;
  const ForecastScore score = score_forecasts(forecasts);
  EXPECT_DOUBLE_EQ(score.auc, 0.5);
  EXPECT_NEAR(score.top_5_percent.lift, 1, 1e-12) << "ties share their failures";
  EXPECT_NEAR(score.brier_skill, 0, 1e-12);
  EXPECT_NEAR(score.deciles[0].observed, 0.02, 1e-12);
}

TEST(ScoreForecasts, CalibrationOfTrueProbabilitiesIsTheDiagonal) {
  packing::RandomSequence random(5);
  std::vector<Forecast> forecasts;
  for (int i = 0; i < 200000; ++i) {
    const double probability = random.uniform() * 0.5;
    forecasts.push_back({probability, random.uniform() < probability});
  }
  for (const CalibrationBin& bin : score_forecasts(forecasts).deciles)
    EXPECT_NEAR(bin.forecast, bin.observed, 0.01);
}

TEST(ScoreForecasts, IsZeroOfNothing) {
  EXPECT_EQ(score_forecasts({}).forecasts, 0);
  EXPECT_EQ(score_forecasts({{0.5, false}}).auc, 0);
}

}  // namespace
}  // namespace regatta::reliability
