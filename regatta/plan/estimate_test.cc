#include "regatta/plan/estimate.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/topo/presets.h"
#include "regatta/workload/model_presets.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;
using workload::Recompute;
using workload::Strategy;

Result<StepBreakdown> estimate(const Strategy& strategy, int global_batch = 1536,
                               const char* model = "gpt3-175b",
                               const char* server = "dgx-a100-80g") {
  return estimate_step({.model = workload::find_model_preset(model)->model,
                        .strategy = strategy,
                        .global_batch = global_batch,
                        .server = *topo::find_server_preset(server),
                        .stack = *cost::find_stack("megatron-deepspeed-fp16")});
}

constexpr Strategy kFull{
    .tp = 8, .pp = 8, .dp = 8, .micro_batch = 1, .recompute = Recompute::kFull};

Strategy with(Strategy strategy, void (*change)(Strategy&)) {
  change(strategy);
  return strategy;
}

TEST(EstimateStep, PartsSumToTheStep) {
  const auto step = estimate(kFull);
  ASSERT_TRUE(step) << step.error().message;
  const double sum =
      (step->matmul + step->attention + step->passes + step->recompute + step->host +
       step->tp_comm + step->pp_comm + step->dp_comm + step->bubble + step->optimizer)
          .value;
  EXPECT_NEAR(step->total().value / sum, 1, 1e-12);
}

// Narayanan et al., SC'21, section 2.2: (p - 1) / m of the ideal time, divided by v when
// interleaved. The output layer is part of a micro-batch, not of what fills the pipeline.
TEST(EstimateStep, BubbleIsThatOfTheSchedule) {
  const auto plain = estimate(kFull);
  const auto interleaved = estimate(with(kFull, [](Strategy& s) {
    s.schedule = workload::Schedule::kInterleaved;
    s.virtual_stages = 3;
  }));
  ASSERT_TRUE(plain && interleaved);
  const double micro_batches = 1536.0 / 8;
  const double ideal = (plain->total() - plain->bubble - plain->dp_comm - plain->optimizer).value;
  EXPECT_NEAR(plain->bubble.value / ideal, 7 / micro_batches, 0.002);
  EXPECT_LT(interleaved->bubble.value, plain->bubble.value / 2.5);
  EXPECT_GT(interleaved->pp_comm, plain->pp_comm);
  const auto alone = estimate({.tp = 8, .pp = 1, .dp = 8, .recompute = Recompute::kFull});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->bubble.value, 0);
  EXPECT_EQ(alone->pp_comm.value, 0);
}

TEST(EstimateStep, RecomputationCostsAForwardPassAndItsSums) {
  const auto none = estimate(with(kFull, [](Strategy& s) { s.recompute = Recompute::kNone; }));
  const auto selective =
      estimate(with(kFull, [](Strategy& s) { s.recompute = Recompute::kSelective; }));
  const auto full = estimate(kFull);
  ASSERT_TRUE(none && selective && full);
  EXPECT_EQ(none->recompute.value, 0);
  EXPECT_GT(selective->recompute.value, 0);
  EXPECT_LT(selective->recompute, full->recompute * 0.5);
  EXPECT_NEAR(full->tp_comm / none->tp_comm, 1.5, 1e-9);
}

TEST(EstimateStep, ReplicasThatShareTheOptimizerUpdateLess) {
  const auto whole = estimate(kFull);
  const auto shared = estimate(with(kFull, [](Strategy& s) { s.zero = 1; }));
  ASSERT_TRUE(whole && shared);
  EXPECT_LT(shared->optimizer, whole->optimizer);
  EXPECT_GT(shared->dp_comm, whole->dp_comm);
}

TEST(EstimateStep, MoreOfAnythingTakesNoLess) {
  const auto small = estimate(kFull, 768);
  const auto large = estimate(kFull, 1536);
  ASSERT_TRUE(small && large);
  EXPECT_GT(large->total(), small->total());
  // Tensor parallelism over two servers pays the network.
  const auto wide = estimate({.tp = 16, .pp = 4, .dp = 8, .recompute = Recompute::kFull});
  ASSERT_TRUE(wide);
  EXPECT_GT(wide->tp_comm, large->tp_comm * 2);
}

TEST(EstimateStep, RefusesWhatItDoesNotKnowOrWhatDoesNotDivide) {
  EXPECT_THAT(estimate({.tp = 7}).error().message, HasSubstr("tp 7 does not divide heads 96"));
  EXPECT_THAT(estimate(with(kFull,
                            [](Strategy& s) {
                              s.schedule = workload::Schedule::kInterleaved;
                              s.virtual_stages = 2;
                              s.dp = 96;
                              s.micro_batch = 4;
                            }))
                  .error()
                  .message,
              HasSubstr("pp 8 does not divide the 4 micro-batches"));
  EXPECT_THAT(estimate({.tp = 8, .dp = 8}, 64, "mixtral-8x7b").error().message,
              HasSubstr("does not know experts"));
}

}  // namespace
}  // namespace regatta::plan
