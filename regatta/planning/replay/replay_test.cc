#include "regatta/planning/replay/replay.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/planning/replay/embedded_sets.h"

namespace regatta::replay {
namespace {

using testing::HasSubstr;

std::vector<PublishedRun> shipped(const std::string& name) {
  for (const EmbeddedSet& set : embedded_sets()) {
    if (name != set.name) continue;
    const auto runs = read_published(set.name, set.text);
    EXPECT_TRUE(runs) << runs.error().message;
    if (runs) return *runs;
  }
  return {};
}

// No row of it was used to fit anything. The bound is what is reached, rounded up.
TEST(Predict, MeetsTheTimesOfKorthikantiWithoutHavingSeenThem) {
  const std::vector<PublishedRun> runs = shipped("korthikanti_table5");
  ASSERT_EQ(runs.size(), 8U);
  const auto pairs = predict_runs(runs);
  ASSERT_TRUE(pairs) << pairs.error().message;
  const PredictionScore result = score(*pairs);
  EXPECT_LT(result.mape, 0.025);
  EXPECT_LT(result.worst, 0.06);
  EXPECT_DOUBLE_EQ(*result.spearman, 1);
}

// Narayanan et al., SC'21, table 1: 1.7 to 1008 billion parameters on 32 to 3072 devices.
TEST(Predict, MeetsTheTimesOfMegatronWithoutHavingSeenThem) {
  const auto pairs = predict_runs(shipped("megatron_sc21_table1"));
  ASSERT_TRUE(pairs) << pairs.error().message;
  const PredictionScore result = score(*pairs);
  EXPECT_EQ(result.rows, 10);
  EXPECT_LT(result.mape, 0.05);
  EXPECT_GT(*result.spearman, 0.98);
}

// 8 to 16,384 devices of three generations; the bounds are what is reached, rounded up.
TEST(Predict, MeetsRunsAtScaleWithoutHavingBeenFittedToThem) {
  const auto pairs = predict_runs(shipped("at_scale"));
  ASSERT_TRUE(pairs) << pairs.error().message;
  const PredictionScore result = score(*pairs);
  EXPECT_EQ(result.rows, 19);
  EXPECT_LT(result.mape, 0.07);
  EXPECT_LT(result.worst, 0.13);
  EXPECT_GT(*result.spearman, 0.98);
}

// A row that does not name its recomputation takes the least that fits; the bounds are what is
// reached.
TEST(Predict, MeetsMixturesOfExpertsOfFourFrameworks) {
  const auto pairs = predict_runs(shipped("experts"));
  ASSERT_TRUE(pairs) << pairs.error().message;
  const PredictionScore result = score(*pairs);
  EXPECT_EQ(result.rows, 11);
  EXPECT_LT(result.mape, 0.1);
  EXPECT_LT(result.worst, 0.2);
  EXPECT_GT(*result.spearman, 0.9);
}

TEST(Predict, NamesTheRunThatCannotBePredicted) {
  std::vector<PublishedRun> runs = shipped("korthikanti_table5");
  runs[1].strategy.tp = 7;
  EXPECT_THAT(predict_runs(runs).error().message,
              HasSubstr("tp8 pp1 dp1 mb4 recompute=selective sp: tp 7 does not divide"));
  runs = shipped("korthikanti_table5");
  runs[0].stack = "none";
  EXPECT_THAT(predict_runs(runs).error().message, HasSubstr("there is no software stack 'none'"));
}

}  // namespace
}  // namespace regatta::replay
