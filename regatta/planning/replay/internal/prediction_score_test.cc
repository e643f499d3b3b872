#include "regatta/planning/replay/internal/prediction_score.h"

#include <gtest/gtest.h>

namespace regatta::replay {
namespace {

PredictionPair pair(double predicted, double measured, const char* model = "m") {
  return {predicted, measured, model};
}

TEST(PredictionScore, IsThatOfTheDefinitions) {
  const PredictionScore result = score({pair(1.1, 1), pair(1.8, 2), pair(4, 4), pair(12, 8)});
  EXPECT_EQ(result.rows, 4);
  EXPECT_NEAR(result.mape, (0.1 + 0.1 + 0 + 0.5) / 4, 1e-12);
  EXPECT_NEAR(result.median, 0.1, 1e-12);
  EXPECT_NEAR(result.worst, 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(*result.spearman, 1);
  EXPECT_DOUBLE_EQ(result.regret, 0);
}

TEST(PredictionScore, RegretIsThatOfTheModelWhoseChoiceIsWorst) {
  // The second of "b" is predicted fastest and is a quarter slower than the first.
  const PredictionScore result = score(
      {pair(1, 1, "a"), pair(2, 3, "a"), pair(5, 4, "b"), pair(4, 5, "b"), pair(1, 100, "alone")});
  EXPECT_NEAR(result.regret, 0.25, 1e-12);
}

TEST(PredictionScore, OfNothingIsNothing) {
  const PredictionScore result = score({});
  EXPECT_EQ(result.rows, 0);
  EXPECT_FALSE(result.spearman.has_value());
}

}  // namespace
}  // namespace regatta::replay
