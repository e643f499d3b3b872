#include "regatta/base/core/stats.h"

#include <array>
#include <cstdint>
#include <span>

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

// The share of the values up to the place, against the definition.
TEST(QuantilePlace, IsTheFirstUpToWhichThereIsTheShare) {
  for (std::size_t count = 1; count <= 200; ++count)
    for (std::size_t rank = 1; rank <= count; ++rank) {
      const double whole = static_cast<double>(rank) / static_cast<double>(count);
      EXPECT_EQ(quantile_place(count, whole), rank - 1) << rank << " of " << count;
      const double below = whole - 0.5 / static_cast<double>(count);
      EXPECT_EQ(quantile_place(count, below), rank - 1) << rank << " of " << count;
    }
  EXPECT_EQ(quantile_place(7, 0), 0U);
  EXPECT_EQ(quantile_place(100, 0.07), 6U) << "0.07 * 100 is above 7 in binary";
}

TEST(Quantile, IsAlwaysOneOfTheValues) {
  EXPECT_EQ(quantile({9, 1, 4, 7}, 0.5), 4);
  EXPECT_EQ(quantile({9, 1, 4, 7}, 0.51), 7);
  EXPECT_EQ(quantile({9, 1, 4, 7}, 0), 1);
  EXPECT_EQ(quantile({9, 1, 4, 7}, 1), 9);
  EXPECT_EQ(quantile({}, 0.5), 0);
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

// The first numbers that its authors' program draws from the seed 1234567.
TEST(SplitMix, DrawsThePublishedNumbers) {
  EXPECT_EQ(splitmix(1234567), 6457827717110365317U);
  EXPECT_EQ(splitmix(1234567 + kSplitMixStep), 3203168211198807973U);
  EXPECT_EQ(splitmix_finish(0), 0U);
}

// RFC 9923, the test vectors of its appendix.
TEST(Fnv1a, GivesThePublishedHashes) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
  EXPECT_EQ(fnv1a_32(""), 0x811c9dc5U);
  EXPECT_EQ(fnv1a_32("a"), 0xe40c292cU);
  EXPECT_EQ(fnv1a_32("foobar"), 0xbf9cf968U);
}

TEST(Fnv1aWords, HashesWordsLikeLetters) {
  const std::array<std::uint32_t, 2> words = {'f', 'o'};
  EXPECT_EQ(fnv1a_words(std::as_bytes(std::span(words))), fnv1a("fo"));
  EXPECT_EQ(fnv1a_words(std::as_bytes(std::span(words)).first(7)), fnv1a("f"));
  EXPECT_EQ(fnv1a_words(std::as_bytes(std::span(words)).last(4), fnv1a("f")), fnv1a("fo"));
}

}  // namespace
}  // namespace regatta
