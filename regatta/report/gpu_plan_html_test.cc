#include "regatta/report/gpu_plan_html.h"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/report/gpu_timeline_svg.h"
#include "regatta/report/gpu_timeline_window.h"
#include "regatta/topo/presets.h"
#include "regatta/workload/model_presets.h"

namespace regatta::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using workload::Schedule;
using workload::Strategy;

// Owns what a page refers to.
struct Sample {
  workload::ModelShape model = workload::find_model_preset("gpt3-175b")->model;
  Strategy strategy;
  int global_batch = 0;
  topo::ServerType server = *topo::find_server_preset("dgx-a100-80g");
  plan::GpuTimeline timeline;

  std::string page(const std::string& name = "pretraining") const {
    return gpu_plan_html({.job_name = name,
                          .cluster_name = "hall 1",
                          .stack_name = "megatron-core",
                          .model = model,
                          .strategy = strategy,
                          .global_batch = global_batch,
                          .server = server,
                          .timeline = timeline});
  }
};

Sample sample(const Strategy& strategy, int global_batch) {
  Sample one;
  one.strategy = strategy;
  one.global_batch = global_batch;
  auto timeline = plan::gpu_timeline({.model = one.model,
                                      .strategy = one.strategy,
                                      .global_batch = global_batch,
                                      .server = one.server,
                                      .stack = *cost::find_stack("megatron-core")});
  EXPECT_TRUE(timeline) << timeline.error().message;
  if (timeline) one.timeline = *std::move(timeline);
  return one;
}

Strategy staged(int pp, Schedule schedule = Schedule::k1F1B) {
  return {.tp = 8,
          .pp = pp,
          .dp = 2,
          .schedule = schedule,
          .virtual_stages = schedule == Schedule::kInterleaved ? 3 : 1,
          .sequence_parallel = true,
          .zero = 1};
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

TEST(GpuPlanHtml, IsOnePageWithoutScriptsThatAsksForNothing) {
  const std::string page = sample(staged(4), 32).page();
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  EXPECT_EQ(count(page, "<svg"), 1U);
  EXPECT_EQ(count(page, "<section>"), count(page, "</section>"));
  EXPECT_EQ(count(page, "<g "), count(page, "</g>"));
}

TEST(GpuPlanHtml, NumbersEveryMicroBatchOfAShortStep) {
  const std::string page = sample(staged(4), 16).page();
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(count(page, ">" + std::to_string(i) + "</text>"), 8U) << i;  // 4 stages, both ways
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_THAT(page, HasSubstr(">stage " + std::to_string(stage) + "</text>"));
}

TEST(GpuPlanHtml, LeavesTheMiddleOfALongStepOut) {
  const Sample small = sample(staged(4), 16);
  EXPECT_EQ(windows_of(small.timeline, 60).shown.size(), 1U);
  const Sample large = sample(staged(4), 1024);
  const Windows windows = windows_of(large.timeline, 60);
  ASSERT_EQ(windows.shown.size(), 2U);
  EXPECT_EQ(windows.shown.front().start, Seconds{});
  EXPECT_EQ(windows.shown.back().end, large.timeline.makespan);
  EXPECT_FALSE(windows.x(large.timeline.makespan * 0.5));
  EXPECT_THAT(large.page(), HasSubstr("alike</text>"));
  EXPECT_LT(large.page().size(), 200'000U);
}

TEST(GpuPlanHtml, StaysReadableForManyStages) {
  for (const int pp : {4, 8, 16, 32, 64}) {
    const Sample one = sample(staged(pp), 512);
    const Windows windows = windows_of(one.timeline, 60);
    EXPECT_LT(windows.width, 3400) << pp;
    EXPECT_LT(one.page().size(), 3'000'000U) << pp;
  }
}

TEST(GpuPlanHtml, NamesTheColoursThatItHas) {
  const auto styles = [](Schedule schedule) {
    std::set<std::string_view> found;
    for (const LegendEntry& entry : gpu_timeline_legend(sample(staged(4, schedule), 32).timeline))
      found.insert(entry.style);
    return found;
  };
  EXPECT_TRUE(styles(Schedule::k1F1B).contains("backward"));
  EXPECT_FALSE(styles(Schedule::k1F1B).contains("weight_gradient"));
  EXPECT_TRUE(styles(Schedule::kZbH1).contains("weight_gradient"));
  EXPECT_FALSE(styles(Schedule::kZbH1).contains("backward"));
  EXPECT_THAT(sample(staged(4, Schedule::kDualPipe), 32).page(), HasSubstr("run at once"));
}

TEST(GpuPlanHtml, SaysHowFarTimelineAndEstimateAreApart) {
  EXPECT_THAT(sample(staged(4), 32).page(), HasSubstr("the estimate is"));
  EXPECT_THAT(sample(staged(4), 32).page(), Not(HasSubstr("slowest stage for all")));
  EXPECT_THAT(sample(staged(36), 144).page(), HasSubstr("the stages hold different blocks"));
}

TEST(GpuPlanHtml, SaysWhatDoesNotFit) {
  const std::string page = sample(staged(1), 32).page();
  EXPECT_THAT(page, HasSubstr("the bar is all it would need"));
  EXPECT_THAT(page, HasSubstr("class=\"value bad\""));
}

TEST(GpuPlanHtml, EscapesNames) {
  EXPECT_THAT(sample(staged(4), 16).page("<b>&"), HasSubstr("&lt;b&gt;&amp;"));
}

TEST(GpuPlanTrace, HasAThreadForEachStageThatIsFilled) {
  const Sample one = sample(staged(4), 16);
  const auto trace = nlohmann::json::parse(gpu_plan_trace(one.timeline));
  std::set<std::string> threads;
  double sum = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") threads.insert(event["args"]["name"]);
    if (event["ph"] == "X") sum += event["dur"].get<double>() * 1e-6;
  }
  EXPECT_EQ(threads, (std::set<std::string>{"stage 0", "stage 1", "stage 2", "stage 3"}));
  EXPECT_NEAR(sum / (4 * one.timeline.makespan.value), 1, 1e-4);
}

}  // namespace
}  // namespace regatta::report
