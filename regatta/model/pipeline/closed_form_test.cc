#include "regatta/model/pipeline/closed_form.h"

#include <array>
#include <cstdlib>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/internal/random_cases.h"

namespace regatta::pipeline {
namespace {

using workload::PipelineSchedule;

// Whole numbers, so that sums are exact; every third case has no messages.
struct Case {
  PipelineShape shape;
  PartTimes part;
  Seconds message{};

  friend std::ostream& operator<<(std::ostream& out, const Case& x) {
    return out << x.shape << ", F " << x.part.forward.value << ", I " << x.part.input_gradient.value
               << ", W " << x.part.weight_gradient.value << ", c " << x.message.value;
  }
};

Case random_case(std::mt19937& random, const PipelineShape& shape) {
  const auto time = [&random] { return Seconds{1.0 * number_between(random, 0, 20)}; };
  Case found{shape, {time(), time(), time()}};
  if (number_between(random, 0, 2) > 0) found.message = {1.0 * number_between(random, 0, 8)};
  return found;
}

double simulated(const Case& x) {
  const auto times = equal_times(x.shape, x.part, x.message);
  const auto step = simulate_pipeline(x.shape, *pipeline_order(x.shape), times);
  return step->makespan.value;
}

TEST(ClosedForm, IsTheSimulationOrABoundOfItIn100000RandomCases) {
  std::mt19937 random(3);
  std::array<int, 5> exact{};
  for (int i = 0; i < 100000; ++i) {
    const Case x = random_case(random, random_shape(random));
    const double truth = simulated(x);
    ASSERT_LE(makespan_bound(x.shape, x.part, x.message).value, truth) << x;
    const auto closed = makespan(x.shape, x.part, x.message);
    if (!closed) continue;
    ASSERT_EQ(closed->value, truth) << x;
    ++exact[static_cast<std::size_t>(x.shape.schedule)];
  }
  for (const int cases : exact)
    EXPECT_GT(cases, 5000);
}

TEST(ClosedForm, IsTheSimulationForLongPipelines) {
  std::mt19937 random(4);
  for (int i = 0; i < 2000; ++i) {
    PipelineShape shape = random_shape(random);
    shape.stages *= number_between(random, 1, 3);
    shape.micro_batches *= number_between(random, 3, 6);
    const Case x = random_case(random, shape);
    const double truth = simulated(x);
    const auto closed = makespan(x.shape, x.part, x.message);
    ASSERT_EQ(closed.value_or(Seconds{truth}).value, truth) << x;
    ASSERT_LE(makespan_bound(x.shape, x.part, x.message).value, truth) << x;
  }
}

TEST(ClosedForm, IsTheSimulationForTimesThatAreNotWhole) {
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) {
    Case x = random_case(random, random_shape(random));
    x.part = {x.part.forward * 1e-4 / 3, x.part.input_gradient * 1e-4 / 3,
              x.part.weight_gradient * 1e-4 / 3};
    x.message = x.message * 1e-4 / 3;
    const double truth = simulated(x);
    const auto closed = makespan(x.shape, x.part, x.message);
    ASSERT_NEAR(closed.value_or(Seconds{truth}).value, truth, 1e-9) << x;
    ASSERT_LE(makespan_bound(x.shape, x.part, x.message).value, truth + 1e-9) << x;
  }
}

TEST(ClosedForm, CoversEveryCaseOf1F1BAndEveryScheduleWithoutMessages) {
  const PartTimes part{{2}, {1}, {3}};
  EXPECT_TRUE(makespan({PipelineSchedule::k1F1B, 8, 3, 1}, part, {50}));
  EXPECT_TRUE(makespan({PipelineSchedule::kInterleaved, 4, 7, 9}, part, {0}));
  EXPECT_TRUE(makespan({PipelineSchedule::kZbH1, 4, 3, 1}, part, {0}));
  EXPECT_TRUE(makespan({PipelineSchedule::kZbV, 4, 7, 1}, part, {0}));
  EXPECT_TRUE(makespan({PipelineSchedule::kDualPipe, 4, 8, 1}, part, {0}));
}

TEST(ClosedForm, SaysNothingWhereItIsNotExact) {
  const PartTimes part{{4}, {4}, {4}};
  EXPECT_FALSE(makespan({PipelineSchedule::kInterleaved, 4, 8, 2}, part, {5}));
  EXPECT_FALSE(makespan({PipelineSchedule::kInterleaved, 4, 9, 5}, part, {1}));
  EXPECT_FALSE(makespan({PipelineSchedule::kZbH1, 4, 8, 1}, part, {5}));
  EXPECT_FALSE(makespan({PipelineSchedule::kZbV, 4, 8, 1}, part, {3}));
  EXPECT_FALSE(makespan({PipelineSchedule::kZbV, 4, 5, 1}, part, {0}));
  EXPECT_FALSE(makespan({PipelineSchedule::kDualPipe, 4, 8, 1}, part, {3}));
}

TEST(ClosedForm, KnowsThePeakOfActivations) {
  std::mt19937 random(6);
  for (int i = 0; i < 5000; ++i) {
    const PipelineShape shape = random_shape(random);
    const auto parts = static_cast<std::size_t>(shape.stages * parts_of(shape));
    const auto counted = peak_activations(shape, *pipeline_order(shape), std::vector(parts, 1.0));
    for (int stage = 0; stage < shape.stages; ++stage)
      ASSERT_EQ(peak_activations(shape, stage), at(counted, stage)) << shape;
  }
}

}  // namespace
}  // namespace regatta::pipeline
