#include "regatta/model/pipeline/uneven_stages.h"

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/closed_form.h"
#include "regatta/model/pipeline/internal/random_cases.h"

namespace regatta::pipeline {
namespace {

using workload::PipelineSchedule;

PipelineTimes random_times(std::mt19937& random, const PipelineShape& shape, int longest_message) {
  PipelineTimes times = equal_times(shape, {}, {});
  const auto time = [&random](int most) { return Seconds{1.0 * number_between(random, 0, most)}; };
  for (PartTimes& part : times.parts)
    part = {time(20), time(20), time(20)};
  for (Seconds& message : times.messages)
    message = time(longest_message);
  return times;
}

double simulated(const PipelineShape& shape, const PipelineTimes& times) {
  return simulate_pipeline(shape, *pipeline_order(shape), times)->makespan.value;
}

TEST(UnevenMakespan, IsTheSimulationOf1F1BIn100000RandomCases) {
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    PipelineShape shape = random_shape(random, PipelineSchedule::k1F1B);
    shape.micro_batches = std::max(shape.micro_batches, shape.stages);
    const PipelineTimes times = random_times(random, shape, 0);
    const auto closed = makespan(shape, times);
    ASSERT_TRUE(closed);
    ASSERT_EQ(closed->value, simulated(shape, times)) << shape;
  }
}

TEST(UnevenMakespan, IsThatOfEqualStagesWhenTheyAreEqual) {
  const PipelineShape shape{.schedule = PipelineSchedule::k1F1B, .stages = 6, .micro_batches = 20};
  const PartTimes part{{3}, {4}, {5}};
  EXPECT_EQ(makespan(shape, equal_times(shape, part, {0}))->value,
            makespan(shape, part, {0})->value);
}

TEST(UnevenMakespan, SaysNothingWhereItIsNotExact) {
  const PipelineShape shape{.schedule = PipelineSchedule::k1F1B, .stages = 4, .micro_batches = 8};
  PipelineTimes times = equal_times(shape, {{1}, {1}, {1}}, {0});
  EXPECT_TRUE(makespan(shape, times));
  EXPECT_FALSE(makespan({PipelineSchedule::kZbH1, 4, 8, 1}, times));
  EXPECT_FALSE(makespan({PipelineSchedule::k1F1B, 4, 3, 1}, times));
  times.messages[1] = {1};
  EXPECT_FALSE(makespan(shape, times));
}

TEST(UnevenBound, NeverExceedsTheSimulationIn100000RandomCases) {
  std::mt19937 random(8);
  for (int i = 0; i < 100000; ++i) {
    const PipelineShape shape = random_shape(random);
    PipelineTimes times = random_times(random, shape, i % 3 == 0 ? 30 : 3);
    times.is_blocking = i % 5 == 0;
    times.overlapped_share = i % 2 == 0 ? 1 : 0.75;
    ASSERT_LE(makespan_bound(shape, times).value, simulated(shape, times) + 1e-9) << shape;
  }
}

TEST(UnevenBound, IsNearTheSimulationWhenOneStageIsSlow) {
  for (const PipelineSchedule schedule : workload::kPipelineSchedules) {
    const PipelineShape shape{schedule, 4, 32, schedule == PipelineSchedule::kInterleaved ? 2 : 1};
    PipelineTimes times = equal_times(shape, {{2}, {2}, {2}}, {0.25});
    at(times.parts, parts_of(shape)) = {{4}, {4}, {4}};
    EXPECT_GT(makespan_bound(shape, times).value, 0.85 * simulated(shape, times)) << shape;
  }
}

}  // namespace
}  // namespace regatta::pipeline
