#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/page_fault.h"
#include "regatta/app/report/internal/stage_memory_svg.h"
#include "regatta/app/report/internal/stage_timeline_svg.h"
#include "regatta/app/report/internal/stage_timeline_window.h"
#include "regatta/app/report/pages.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"

namespace regatta::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using workload::PipelineSchedule;
using workload::Strategy;

// Owns what a page refers to.
struct Sample {
  workload::ModelShape model = workload::find_model_preset("gpt3-175b")->model;
  Strategy strategy;
  int global_batch = 0;
  topo::ServerType server = *topo::find_server_preset("dgx-a100-80g");
  plan::StageTimeline timeline;

  std::string page(const std::string& name = "pretraining") const {
    return plan_html({.job_name = name,
                      .cluster_name = "hall 1",
                      .stack_name = "megatron-core",
                      .model = model,
                      .strategy = strategy,
                      .global_batch = global_batch,
                      .device = server.device.name,
                      .capacity = server.device.memory,
                      .timeline = timeline});
  }
};

Sample sample(const Strategy& strategy, int global_batch) {
  Sample one;
  one.strategy = strategy;
  one.global_batch = global_batch;
  auto timeline = plan::stage_timeline({.model = one.model,
                                        .strategy = one.strategy,
                                        .global_batch = global_batch,
                                        .server = one.server,
                                        .stack = *cost::find_software_stack("megatron-core")});
  EXPECT_TRUE(timeline) << timeline.error().message;
  if (timeline) one.timeline = *std::move(timeline);
  return one;
}

Strategy staged(int pp, PipelineSchedule schedule = PipelineSchedule::k1F1B) {
  return {.tp = 8,
          .pp = pp,
          .dp = 2,
          .schedule = schedule,
          .virtual_stages = schedule == PipelineSchedule::kInterleaved ? 3 : 1,
          .sequence_parallel = true,
          .zero = 1};
}

TEST(PlanHtml, IsASoundPage) {
  EXPECT_EQ(page_fault(sample(staged(4), 32).page()), "");
}

TEST(PlanHtml, SaysHowLayersDifferAndWhatIsTrained) {
  Sample one = sample(staged(4), 32);
  EXPECT_THAT(one.page(), Not(HasSubstr("LoRA")));
  one.model.window = {.tokens = 128, .full_every = 2};
  one.model.packed = 512;
  one.model.adapters = {.rank = 8, .qkv = true};
  EXPECT_EQ(page_fault(one.page()), "");
  EXPECT_THAT(one.page(),
              HasSubstr("queries see 128 tokens, all in one of 2 layers; samples of 512 "
                        "tokens are packed; LoRA of rank 8 trains 37.75 million of the"));
}

TEST(PlanHtml, OpensALongTimelineWhereThePipelineIsFull) {
  const Sample one = sample(staged(16), 512);
  const TimelineWindows windows = timeline_windows(one.timeline);
  EXPECT_GT(windows.steady_x, 100);
  EXPECT_LT(windows.steady_x, windows.width / 2);
  const std::string opens = "data-open=\"" + std::to_string(std::lround(windows.steady_x)) + "\"";
  EXPECT_EQ(count(one.page(), opens), 2U);  // stages and memory
}

TEST(PlanHtml, NumbersEveryMicroBatchOfAShortStep) {
  const std::string page = sample(staged(4), 16).page();
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(count(page, ">" + std::to_string(i) + "</text>"), 8U) << i;  // 4 stages, both ways
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_THAT(page, HasSubstr(">stage " + std::to_string(stage) + "</text>"));
}

TEST(PlanHtml, LeavesTheMiddleOfALongStepOut) {
  const Sample small = sample(staged(4), 16);
  EXPECT_EQ(timeline_windows(small.timeline).shown.size(), 1U);
  const Sample large = sample(staged(4), 1024);
  const TimelineWindows windows = timeline_windows(large.timeline);
  ASSERT_EQ(windows.shown.size(), 2U);
  EXPECT_EQ(windows.shown.front().start, Seconds{});
  EXPECT_EQ(windows.shown.back().end, large.timeline.makespan);
  EXPECT_FALSE(windows.x(large.timeline.makespan * 0.5));
  EXPECT_THAT(large.page(), HasSubstr("alike</text>"));
  EXPECT_LT(large.page().size(), 200'000U);
}

TEST(PlanHtml, StaysReadableForManyStages) {
  for (const int pp : {4, 8, 16, 32, 64}) {
    const Sample one = sample(staged(pp), 512);
    const TimelineWindows windows = timeline_windows(one.timeline);
    EXPECT_LT(windows.width, 3400) << pp;
    EXPECT_LT(one.page().size(), 3'000'000U) << pp;
  }
}

TEST(PlanHtml, NamesTheColoursThatItHas) {
  const auto styles = [](PipelineSchedule schedule) {
    std::set<std::string> found;
    for (const auto& [style, name] :
         stage_timeline_legend(sample(staged(4, schedule), 32).timeline))
      found.insert(style);
    return found;
  };
  EXPECT_TRUE(styles(PipelineSchedule::k1F1B).contains("backward"));
  EXPECT_FALSE(styles(PipelineSchedule::k1F1B).contains("weight_gradient"));
  EXPECT_TRUE(styles(PipelineSchedule::kZbH1).contains("weight_gradient"));
  EXPECT_FALSE(styles(PipelineSchedule::kZbH1).contains("backward"));
  EXPECT_THAT(sample(staged(4, PipelineSchedule::kDualPipe), 32).page(), HasSubstr("run at once"));
}

TEST(PlanHtml, SaysHowFarTimelineAndEstimateAreApart) {
  EXPECT_THAT(sample(staged(4), 32).page(), HasSubstr("the closed form gives"));
  EXPECT_THAT(sample(staged(4), 32).page(), Not(HasSubstr("slowest stage for all")));
  EXPECT_THAT(sample(staged(36), 144).page(), HasSubstr("the stages hold different blocks"));
}

TEST(PlanHtml, SaysWhatDoesNotFit) {
  const std::string page = sample(staged(1), 32).page();
  EXPECT_THAT(page, HasSubstr("the bar is the memory that it would need"));
  EXPECT_THAT(page, HasSubstr("class=\"value bad\""));
}

TEST(PlanHtml, DrawsWhatStagesHoldBesideWhatADeviceHas) {
  const Sample few = sample(staged(4), 32);
  const std::string svg = stage_memory_svg(few.timeline, few.server.device.memory);
  EXPECT_EQ(count(svg, "class=\"limit\""), 4U);
  EXPECT_THAT(few.page(), HasSubstr(svg));
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_THAT(svg, HasSubstr(">stage " + std::to_string(stage) + "</text>"));
  const double most = few.timeline.estimate.memory.total();
  EXPECT_THAT(svg, HasSubstr(">" + format_bytes(most) + "</text>"));
  // All of the first stage's micro-batches begin and end within the picture.
  const std::string first =
      svg.substr(svg.find(" d=\""), svg.find("\"><title>") - svg.find(" d=\""));
  EXPECT_GE(count(first, "V"), 16U);
}

TEST(PlanHtml, DrawsEightOfManyStagesAndTheOneThatHoldsMost) {
  const Sample many = sample(staged(64), 512);
  ASSERT_EQ(many.timeline.estimate.worst_stage, 16);
  const std::string svg = stage_memory_svg(many.timeline, many.server.device.memory);
  for (const char* stage : {"stage 0<", "stage 16<", "stage 63<"})
    EXPECT_THAT(svg, HasSubstr(stage));
  EXPECT_LE(count(svg, "<text x=\"0\""), 16U);  // its name and its peak
}

TEST(PlanHtml, ShowsTheSizesThatItWasPickedFrom) {
  const Sample one = sample(staged(4), 32);
  plan::ClusterSizes sizes;
  for (const int devices : {64, 128, 256}) {
    plan::ClusterSize size;
    size.devices = devices;
    size.tokens_per_s = 100.0 * devices;
    size.usage = {.time = {1e7 / devices}, .device_hours = 3e3};
    sizes.sizes.push_back(size);
  }
  const std::string page = plan_html({.job_name = "a",
                                      .cluster_name = "b",
                                      .stack_name = "c",
                                      .model = one.model,
                                      .strategy = one.strategy,
                                      .global_batch = one.global_batch,
                                      .device = one.server.device.name,
                                      .capacity = one.server.device.memory,
                                      .timeline = one.timeline,
                                      .sizes = &sizes,
                                      .picked = 1});
  EXPECT_THAT(page, HasSubstr("on 64 to 256 devices; this page is about 128"));
  EXPECT_EQ(count(page, "<i class=\"dot"), 6U);  // in two charts
  EXPECT_EQ(count(page, "<i class=\"dot best minor\""), 2U);
  EXPECT_THAT(one.page(), Not(HasSubstr("How many devices")));
}

TEST(PlanHtml, SaysTheIntervalAndWhatTheStackAssumes) {
  const Sample one = sample(staged(4), 32);
  const std::string page = plan_html({.job_name = "a",
                                      .cluster_name = "b",
                                      .stack_name = "c",
                                      .stack_assumes = "fused attention",
                                      .interval = plan::PredictionInterval{{2.0}, {3.0}},
                                      .model = one.model,
                                      .strategy = one.strategy,
                                      .global_batch = one.global_batch,
                                      .device = one.server.device.name,
                                      .capacity = one.server.device.memory,
                                      .timeline = one.timeline});
  EXPECT_EQ(page_fault(page), "");
  EXPECT_THAT(page, HasSubstr("in closed form; 80 % within 2 s to 3 s"));
  EXPECT_THAT(page, HasSubstr("c: fused attention"));
}

TEST(PlanHtml, EscapesNames) {
  EXPECT_THAT(sample(staged(4), 16).page("<b>&"), HasSubstr("&lt;b&gt;&amp;"));
}

TEST(PlanTrace, HasAThreadForEachStageThatIsFilled) {
  const Sample one = sample(staged(4), 16);
  const auto trace = nlohmann::json::parse(plan_trace(one.timeline));
  std::set<std::string> threads;
  double sum = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") threads.insert(event["args"]["name"]);
    if (event["ph"] == "X") sum += event["dur"].get<double>() * 1e-6;
  }
  EXPECT_EQ(threads, (std::set<std::string>{"stage 0", "stage 1", "stage 2", "stage 3"}));
  EXPECT_NEAR(sum / (4 * one.timeline.makespan.value), 1, 1e-4);
}

TEST(PlanTrace, CountsTheMemoryOfEachStage) {
  const Sample one = sample(staged(4), 16);
  const auto trace = nlohmann::json::parse(plan_trace(one.timeline));
  std::map<std::string, double> peaks;
  std::map<std::string, double> at;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    const std::string name = event["name"];
    EXPECT_GE(event["ts"].get<double>(), at[name]);
    at[name] = event["ts"];
    peaks[name] = std::max(peaks[name], event["args"]["bytes"].get<double>());
  }
  ASSERT_EQ(peaks.size(), 4U);
  EXPECT_NEAR(peaks["memory of stage 0"] / one.timeline.estimate.memory.total(), 1, 1e-9);
  EXPECT_LT(peaks["memory of stage 2"], peaks["memory of stage 1"]);
}

}  // namespace
}  // namespace regatta::report
