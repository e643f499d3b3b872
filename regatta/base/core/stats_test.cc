#include "regatta/base/core/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta {
namespace {

using ::testing::ElementsAre;

TEST(Median, IsTheMiddleOfAnOddCount) {
  EXPECT_EQ(median({9, 1, 4}), 4);
}

TEST(Median, IsTheMeanOfTheTwoMiddleOnesOfAnEvenCount) {
  EXPECT_EQ(median({8, 2, 4, 100}), 6);
}

TEST(Median, IsZeroOfNothing) {
  EXPECT_EQ(median({}), 0);
}

TEST(AverageRanks, ShareThePlacesOfEqualValues) {
  EXPECT_THAT(average_ranks({5, 3, 5, 9}), ElementsAre(2.5, 1, 2.5, 4));
  EXPECT_THAT(average_ranks({7, 7, 7}), ElementsAre(2, 2, 2));
}

TEST(Spearman, IsOneForTheSameOrderAndMinusOneForTheReverse) {
  EXPECT_DOUBLE_EQ(*spearman({1, 2, 3, 4}, {10, 200, 3000, 40000}), 1);
  EXPECT_DOUBLE_EQ(*spearman({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
}

// By hand without ties: d = {0, 1, -1, 0, 0}, 1 - 6 * 2 / (5 * 24) = 0.9.
TEST(Spearman, MatchesTheFormulaOfDifferences) {
  EXPECT_NEAR(*spearman({1, 2, 3, 4, 5}, {1, 3, 2, 4, 5}), 0.9, 1e-12);
}

// By hand with a tie: ranks {1, 2.5, 2.5, 4} and {1, 2, 3, 4}; covariance 4.5, variances 4.5 and 5,
// so 4.5 / sqrt(22.5).
TEST(Spearman, GivesTiesTheirMeanRank) {
  EXPECT_NEAR(*spearman({1, 2, 2, 3}, {10, 20, 30, 40}), 0.9486832980505138, 1e-12);
}

TEST(Spearman, IsUndefinedForTooFewConstantOrUnequalSides) {
  EXPECT_FALSE(spearman({1, 2}, {1, 2}).has_value());
  EXPECT_FALSE(spearman({1, 2, 3}, {5, 5, 5}).has_value());
  EXPECT_FALSE(spearman({1, 2, 3}, {1, 2}).has_value());
}

}  // namespace
}  // namespace regatta
