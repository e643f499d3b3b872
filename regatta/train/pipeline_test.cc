#include "regatta/train/pipeline.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::train {
namespace {

TEST(OneFOneB, AlternatesAtOnceOnTheLastStage) {
  EXPECT_THAT(one_f_one_b(3, 4, 2),
              testing::ElementsAre(PipelineAction{true, 0}, PipelineAction{false, 0},
                                   PipelineAction{true, 1}, PipelineAction{false, 1}));
}

TEST(OneFOneB, StartsWithTheForwardsThatFillThePipeline) {
  EXPECT_THAT(one_f_one_b(0, 3, 3),
              testing::ElementsAre(PipelineAction{true, 0}, PipelineAction{true, 1},
                                   PipelineAction{true, 2}, PipelineAction{false, 0},
                                   PipelineAction{false, 1}, PipelineAction{false, 2}));
}

TEST(OneFOneB, RunsEachMicroBatchForwardThenBackwardAndHoldsFewInFlight) {
  for (const int stages : {1, 2, 4}) {
    for (const int micro_batches : {1, 2, 3, 8}) {
      for (int stage = 0; stage < stages; ++stage) {
        const auto actions = one_f_one_b(stage, stages, micro_batches);
        EXPECT_EQ(static_cast<int>(actions.size()), 2 * micro_batches);
        int forwards = 0;
        int backwards = 0;
        int in_flight_max = 0;
        for (const PipelineAction& action : actions) {
          EXPECT_EQ(action.micro_batch, action.is_forward ? forwards++ : backwards++);
          EXPECT_LE(backwards, forwards);
          in_flight_max = std::max(in_flight_max, forwards - backwards);
        }
        EXPECT_EQ(in_flight_max, std::min(micro_batches, stages - stage));
      }
    }
  }
}

}  // namespace
}  // namespace regatta::train
