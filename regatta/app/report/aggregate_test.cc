#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/run_result.h"
#include "regatta/model/workload/job.h"

namespace regatta::report {
namespace {

using nlohmann::json;
using workload::Phase;

json step_event(int step, double time_s) {
  return {{"event", "step"},
          {"step", step},
          {"loss", 5.0 - step},
          {"time_s", time_s},
          {"tokens", 1000}};
}

json phases_event(int step, double forward_s, double backward_s) {
  workload::PhaseTimes phases;
  phases[Phase::kForward] = Seconds{forward_s};
  phases[Phase::kBackward] = Seconds{backward_s};
  return {{"event", "phases"}, {"step", step}, {"phases", workload::phases_to_json(phases)}};
}

TEST(Aggregator, GivesAStepWhenEveryRankHasToldIt) {
  Aggregator aggregator(2);
  EXPECT_FALSE(*aggregator.add(Rank{0}, step_event(0, 1.0)));
  EXPECT_FALSE(*aggregator.add(Rank{0}, step_event(0, 1.0)));  // told twice
  const auto record = *aggregator.add(Rank{1}, step_event(0, 1.5));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->time.value, 1.5);
  EXPECT_EQ(record->loss, 5.0);
  EXPECT_EQ(aggregator.tokens_per_step(), 1000);
}

TEST(Aggregator, TakesTheMedianWithoutTheFirstSteps) {
  Aggregator aggregator(1);
  const double times[] = {9, 8, 7, 6, 5, 1, 2, 3, 2.5, 1.5};
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(aggregator.add(Rank{0}, step_event(i, times[i])));
  }
  const MeasuredRun measured = aggregator.measured(5, {});
  EXPECT_EQ(measured.warm_up_steps, 5);
  EXPECT_EQ(measured.step_time.value, 2.0);
  EXPECT_EQ(measured.step_time_min.value, 1.0);
  EXPECT_EQ(measured.step_time_max.value, 3.0);
  EXPECT_EQ(measured.tokens_per_s, 500.0);
  EXPECT_EQ(measured.steps.size(), 10U);
}

TEST(Aggregator, LeavesOutFewerStepsOfAShortRun) {
  Aggregator aggregator(1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(aggregator.add(Rank{0}, step_event(i, 3.0 - i)));
  }
  const MeasuredRun measured = aggregator.measured(5, {});
  EXPECT_EQ(measured.warm_up_steps, 1);
  EXPECT_EQ(measured.step_time.value, 1.5);
}

TEST(Aggregator, ScalesPhasesToTheStepTime) {
  Aggregator aggregator(2);
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(aggregator.add(Rank{rank}, phases_event(0, 1.0 + rank, 2.5)));
    ASSERT_TRUE(aggregator.add(Rank{rank}, step_event(0, 8.0)));
  }
  const MeasuredRun measured = aggregator.measured(0, {});
  EXPECT_DOUBLE_EQ(measured.phases[Phase::kForward].value, 3.0);   // 1.5 of 4
  EXPECT_DOUBLE_EQ(measured.phases[Phase::kBackward].value, 5.0);  // 2.5 of 4
}

TEST(Aggregator, StartsTheTimelineAtZero) {
  Aggregator aggregator(1);
  workload::Timeline spans(2);
  spans[0] = {
      .rank = Rank{0}, .phase = Phase::kForward, .start = Seconds{105}, .duration = Seconds{1}};
  spans[1] = {
      .rank = Rank{0}, .phase = Phase::kBackward, .start = Seconds{104}, .duration = Seconds{1}};
  ASSERT_TRUE(aggregator.add(
      Rank{0}, {{"event", "spans"}, {"step", 0}, {"spans", workload::timeline_to_json(spans)}}));
  const MeasuredRun measured = aggregator.measured(0, {});
  ASSERT_EQ(measured.timeline.size(), 2U);
  EXPECT_EQ(measured.timeline[0].start.value, 1);
  EXPECT_EQ(measured.timeline[1].start.value, 0);
}

TEST(Aggregator, SharesTrafficAmongTheSteps) {
  Aggregator aggregator(1);
  ASSERT_TRUE(aggregator.add(Rank{0}, step_event(0, 1)));
  ASSERT_TRUE(aggregator.add(Rank{0}, step_event(1, 1)));
  const topo::DirectedLink used{LinkId{1}, true};
  const MeasuredRun measured =
      aggregator.measured(0, {{used, Bytes{100}}, {{LinkId{2}, true}, Bytes{0}}});
  ASSERT_EQ(measured.traffic.size(), 1U);
  EXPECT_EQ(measured.traffic[0].link, used);
  EXPECT_EQ(measured.traffic[0].bytes.value, 50);
}

TEST(Aggregator, PassesOverOtherEventsAndRefusesBrokenOnes) {
  Aggregator aggregator(1);
  EXPECT_TRUE(aggregator.add(Rank{0}, {{"event", "done"}}));
  for (const json& broken :
       {json{{"event", "step"}}, json{{"event", 3}}, json::array(),
        json{{"event", "step"}, {"step", "a"}},
        json{{"event", "phases"}, {"step", 0}, {"phases", {{"forward_s", "x"}}}},
        json{{"event", "spans"}, {"spans", {1}}}}) {
    const auto result = aggregator.add(Rank{0}, broken);
    ASSERT_FALSE(result) << broken.dump();
    EXPECT_EQ(result.error().code, Code::kInvalidInput);
    EXPECT_THAT(result.error().message, testing::StartsWith("rank 0: event"));
  }
  EXPECT_TRUE(aggregator.measured(5, {}).steps.empty());
  EXPECT_EQ(aggregator.measured(5, {}).step_time.value, 0);
}

}  // namespace
}  // namespace regatta::report
