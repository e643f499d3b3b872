#include "regatta/model/pipeline/pipeline_simulation.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/pipeline/internal/micro_batch_route.h"
#include "regatta/model/pipeline/internal/random_cases.h"

namespace regatta::pipeline {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using workload::PipelineSchedule;

PipelineSimulation simulated_with(const PipelineShape& shape, const PipelineTimes& times) {
  const auto order = pipeline_order(shape);
  EXPECT_TRUE(order);
  auto result = simulate_pipeline(shape, *order, times);
  EXPECT_TRUE(result) << shape;
  return *std::move(result);
}

PipelineSimulation simulated(const PipelineShape& shape, const PartTimes& part,
                             double message = 0) {
  return simulated_with(shape, equal_times(shape, part, {message}));
}

// Between the first start and the last end of a stage.
double idle(const PipelineSimulation& step, std::size_t stage) {
  const auto& spans = step.spans[stage];
  return (spans.back().end - spans.front().start - step.busy[stage]).value;
}

TEST(SimulatePipeline, TakesAPieceAtATimeAsSoonAsItCan) {
  const PipelineShape shape{.schedule = PipelineSchedule::k1F1B, .stages = 2, .micro_batches = 2};
  const PipelineSimulation step = simulated(shape, {{1}, {1}, {1}}, 0.5);
  // Stage 0: F0 F1 B0 B1; stage 1: F0 B0 F1 B1.
  const auto starts = [&step](std::size_t stage) {
    std::vector<double> found;
    for (const PassInterval& span : step.spans[stage])
      found.push_back(span.start.value);
    return found;
  };
  EXPECT_THAT(starts(0), ElementsAre(0, 1, 5, 8));
  EXPECT_THAT(starts(1), ElementsAre(1.5, 2.5, 4.5, 5.5));
  EXPECT_EQ(step.makespan.value, 9 + 1);
  EXPECT_EQ(step.busy[0].value, 6);
}

// The notes of each schedule give bubbles for equal stages without messages; F, I and W below.
TEST(SimulatePipeline, FindsThePublishedBubbles) {
  const PartTimes unit{{1}, {1}, {1}};
  for (const int p : {2, 4, 8}) {
    const int m = 4 * p;
    const auto bubble = [&](PipelineSchedule schedule, int v) {
      const PipelineShape shape{schedule, p, m, v};
      const PipelineSimulation step = simulated(shape, unit);
      return (step.makespan - step.busy[0]).value;
    };
    // Narayanan et al., SC'21, section 2.2: (p - 1) (F + B), and a v-th of that in whole stages,
    // where F and B of a part are a v-th of theirs.
    EXPECT_EQ(bubble(PipelineSchedule::k1F1B, 1), 3 * (p - 1));
    EXPECT_EQ(bubble(PipelineSchedule::kInterleaved, 2), 3 * (p - 1));
    EXPECT_EQ(bubble(PipelineSchedule::kInterleaved, 4), 3 * (p - 1));
    // Qi et al., arXiv 2401.10241, section 2: (p - 1) (F + I - W).
    EXPECT_EQ(bubble(PipelineSchedule::kZbH1, 1), p - 1);
    // DeepSeek-V3, table of section 3.2.1: (p / 2 - 1) (F&B + B - 3 W) with B = I + W.
    EXPECT_EQ(bubble(PipelineSchedule::kDualPipe, 1), (p / 2 - 1) * (3 + 2 - 3));
  }
}

// Qi et al., arXiv 2401.10241: no stage ever waits between its first and its last pass, and the
// last stage starts p - 1 forwards after the first.
TEST(SimulatePipeline, FindsNoBubbleInZbVWhenThreePassesTakeTheSameTime) {
  for (const int p : {1, 2, 3, 5, 8}) {
    const PipelineShape shape{
        .schedule = PipelineSchedule::kZbV, .stages = p, .micro_batches = 2 * p + 3};
    const PipelineSimulation step = simulated(shape, {{1}, {1}, {1}});
    for (std::size_t stage = 0; stage < step.spans.size(); ++stage)
      EXPECT_EQ(idle(step, stage), 0);
    EXPECT_EQ(step.makespan.value, 6 * shape.micro_batches + p - 1);
  }
}

bool takes_one_at_a_time(const std::vector<Pass>& passes, const std::vector<PassInterval>& spans) {
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (!passes[i - 1].overlaps_next && spans[i].start < spans[i - 1].end) return false;
  }
  return true;
}

TEST(SimulatePipeline, NeverWaitsForEverOrForWhatHasNotEnded) {
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) {
    const PipelineShape shape = random_shape(random);
    PipelineTimes times = equal_times(shape, {}, {});
    for (PartTimes& part : times.parts) {
      part = {{1.0 * number_between(random, 0, 9)},
              {1.0 * number_between(random, 0, 9)},
              {1.0 * number_between(random, 0, 9)}};
    }
    for (Seconds& message : times.messages)
      message = {1.0 * number_between(random, 0, 5)};
    times.is_blocking = i % 2 == 0;
    const auto order = pipeline_order(shape);
    const auto step = simulate_pipeline(shape, *order, times);
    ASSERT_TRUE(step) << shape;
    for (std::size_t stage = 0; stage < step->spans.size(); ++stage) {
      ASSERT_EQ(step->spans[stage].size(), (*order)[stage].size()) << shape;
      ASSERT_TRUE(takes_one_at_a_time((*order)[stage], step->spans[stage])) << shape;
      ASSERT_GE(step->makespan, step->spans[stage].back().end) << shape;
    }
  }
}

TEST(SimulatePipeline, HoldsUpASenderThatIsBlocked) {
  const PipelineShape shape{.schedule = PipelineSchedule::k1F1B, .stages = 2, .micro_batches = 2};
  PipelineTimes times = equal_times(shape, {{1}, {1}, {1}}, {0.5});
  times.is_blocking = true;
  const PipelineSimulation step = simulated_with(shape, times);
  EXPECT_EQ(step.spans[0][1].start.value, 1.5);
  EXPECT_GT(step.makespan.value, simulated(shape, {{1}, {1}, {1}}, 0.5).makespan.value);
}

TEST(SimulatePipeline, ShortensWhatOverlaps) {
  const PipelineShape shape{
      .schedule = PipelineSchedule::kDualPipe, .stages = 2, .micro_batches = 8};
  PipelineTimes times = equal_times(shape, {{1}, {1}, {1}}, {0});
  const double whole = simulated_with(shape, times).makespan.value;
  times.overlapped_share = 0.5;
  // The forwards of 5 of the 8 micro-batches overlap with another's backward.
  EXPECT_DOUBLE_EQ(simulated_with(shape, times).makespan.value, whole - 5 * 1.5);
}

TEST(SimulatePipeline, NamesTheStageOfAnOrderThatWaitsForItself) {
  const PipelineShape shape{.schedule = PipelineSchedule::k1F1B, .stages = 2, .micro_batches = 1};
  auto order = pipeline_order(shape);
  ASSERT_TRUE(order);
  std::swap((*order)[1][0], (*order)[1][1]);
  const auto step = simulate_pipeline(shape, *order, equal_times(shape, {}, {}));
  ASSERT_FALSE(step);
  EXPECT_THAT(step.error().message, HasSubstr("order of stage"));
}

TEST(SimulatePipeline, RefusesTimesAndOrdersThatDoNotFit) {
  const PipelineShape shape{.schedule = PipelineSchedule::k1F1B, .stages = 2, .micro_batches = 1};
  auto order = pipeline_order(shape);
  ASSERT_TRUE(order);
  EXPECT_FALSE(simulate_pipeline(shape, *order, {}));
  (*order)[0][0].micro_batch = 7;
  EXPECT_FALSE(simulate_pipeline(shape, *order, equal_times(shape, {}, {})));
  (*order)[0] = {{.kind = PassKind::kForward, .overlaps_next = true}};
  EXPECT_FALSE(simulate_pipeline(shape, *order, equal_times(shape, {}, {})));
}

std::vector<double> peaks(const PipelineShape& shape, double size = 1) {
  const auto parts = static_cast<std::size_t>(shape.stages * parts_of(shape));
  return peak_activations(shape, *pipeline_order(shape), std::vector(parts, size));
}

TEST(PeakActivations, AreThoseOfThePublishedSchedules) {
  EXPECT_THAT(peaks({.schedule = PipelineSchedule::k1F1B, .stages = 4, .micro_batches = 8}),
              ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(peaks({.schedule = PipelineSchedule::k1F1B, .stages = 4, .micro_batches = 2}),
              ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(peaks({.schedule = PipelineSchedule::kZbH1, .stages = 4, .micro_batches = 8}),
              Each(4));
  // In parts, each half a stage: those of p micro-batches.
  EXPECT_THAT(peaks({.schedule = PipelineSchedule::kZbV, .stages = 4, .micro_batches = 8}, 0.5),
              Each(4));
  EXPECT_THAT(peaks({.schedule = PipelineSchedule::kDualPipe, .stages = 4, .micro_batches = 8}),
              Each(5));
}

TEST(PeakActivations, WeighTheParts) {
  const PipelineShape shape{.schedule = PipelineSchedule::kInterleaved,
                            .stages = 1,
                            .micro_batches = 2,
                            .virtual_stages = 2};
  // F0 F0' B0' F1 ... of stage 0: one of each part at most at a time.
  const auto order = pipeline_order(shape);
  EXPECT_THAT(peak_activations(shape, *order, {1, 10}), ElementsAre(11));
}

}  // namespace
}  // namespace regatta::pipeline
