#include "regatta/model/pipeline/pipeline_order.h"

#include <map>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/pipeline/internal/random_cases.h"

namespace regatta::pipeline {
namespace {

using ::testing::HasSubstr;
using workload::PipelineSchedule;

// "F0 F1 B0": the passes of one stage; I and W are the two gradients apart, a second part has a
// stroke, an overlap a plus.
std::string text_of(const std::vector<Pass>& passes) {
  std::string text;
  for (const Pass& pass : passes) {
    text += "FBIW"[static_cast<int>(pass.kind)] + std::to_string(pass.micro_batch);
    text += std::string(static_cast<std::size_t>(pass.part), '\'');
    text += pass.overlaps_next ? "+" : " ";
  }
  text.pop_back();
  return text;
}

TEST(PipelineOrder, AlternatesForwardsAndBackwardsIn1F1B) {
  const auto order =
      pipeline_order({.schedule = PipelineSchedule::k1F1B, .stages = 3, .micro_batches = 4});
  ASSERT_TRUE(order);
  EXPECT_EQ(text_of((*order)[0]), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text_of((*order)[2]), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(PipelineOrder, GoesInGroupsThroughThePartsWhenInterleaved) {
  const auto order = pipeline_order({.schedule = PipelineSchedule::kInterleaved,
                                     .stages = 2,
                                     .micro_batches = 4,
                                     .virtual_stages = 2});
  ASSERT_TRUE(order);
  EXPECT_EQ(text_of((*order)[0]), "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3");
  EXPECT_EQ(text_of((*order)[1]), "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3");
}

TEST(PipelineOrder, MakesGroupsAsEvenAsCanBeWhenStagesDoNotDivideMicroBatches) {
  EXPECT_EQ(largest_group({.stages = 4, .micro_batches = 12}), 4);
  EXPECT_EQ(largest_group({.stages = 4, .micro_batches = 13}), 5);  // 5 4 4
  EXPECT_EQ(largest_group({.stages = 4, .micro_batches = 11}), 6);  // 6 5
  EXPECT_EQ(largest_group({.stages = 4, .micro_batches = 3}), 3);
}

TEST(PipelineOrder, LeavesWeightGradientsForTheBubblesInZbH1) {
  const auto order =
      pipeline_order({.schedule = PipelineSchedule::kZbH1, .stages = 3, .micro_batches = 3});
  ASSERT_TRUE(order);
  EXPECT_EQ(text_of((*order)[0]), "F0 F1 F2 I0 W0 I1 W1 I2 W2");
  EXPECT_EQ(text_of((*order)[2]), "F0 I0 F1 I1 F2 I2 W0 W1 W2");
}

TEST(PipelineOrder, TurnsBackAtTheLastStageInZbV) {
  const auto order =
      pipeline_order({.schedule = PipelineSchedule::kZbV, .stages = 2, .micro_batches = 3});
  ASSERT_TRUE(order);
  EXPECT_EQ(text_of((*order)[0]), "F0 F1 F2 F0' I0' W0' F1' I1' W1' I0 W0 F2' I2' W2' I1 W1 I2 W2");
}

TEST(PipelineOrder, OverlapsTheTwoDirectionsOfDualPipe) {
  const auto order =
      pipeline_order({.schedule = PipelineSchedule::kDualPipe, .stages = 2, .micro_batches = 4});
  ASSERT_TRUE(order);
  EXPECT_EQ(text_of((*order)[0]), "F0 F2' F1 B2' F3'+B0 B3' I1 W1");
}

TEST(PipelineOrder, HoldsEveryPieceOnceAndGradientsBehindForwards) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const PipelineShape shape = random_shape(random);
    const auto order = pipeline_order(shape);
    ASSERT_TRUE(order);
    for (const auto& passes : *order) {
      std::map<std::pair<int, int>, std::string> done;  // part and micro-batch
      for (const Pass& pass : passes)
        done[{pass.part, pass.micro_batch}] += "FBIW"[static_cast<int>(pass.kind)];
      // DualPipe: each micro-batch meets a stage once, in one part of the two.
      const int parts = shape.schedule == PipelineSchedule::kDualPipe ? 1 : parts_of(shape);
      ASSERT_EQ(done.size(), static_cast<std::size_t>(parts * shape.micro_batches)) << shape;
      for (const auto& [what, kinds] : done)
        ASSERT_TRUE(kinds == "FB" || kinds == "FIW") << shape;
    }
  }
}

TEST(PipelineOrder, RefusesWhatTheScheduleCannotDo) {
  const auto message = [](const PipelineShape& shape) {
    return pipeline_order(shape).error().message;
  };
  EXPECT_THAT(message({.stages = 0}), HasSubstr("must be at least 1"));
  EXPECT_THAT(message({.schedule = PipelineSchedule::kZbH1, .virtual_stages = 2}),
              HasSubstr("only interleaved"));
  EXPECT_THAT(message({.schedule = PipelineSchedule::kDualPipe, .stages = 3, .micro_batches = 8}),
              HasSubstr("3 stages"));
  EXPECT_THAT(message({.schedule = PipelineSchedule::kDualPipe, .stages = 4, .micro_batches = 6}),
              HasSubstr("twice the stages"));
}

}  // namespace
}  // namespace regatta::pipeline
