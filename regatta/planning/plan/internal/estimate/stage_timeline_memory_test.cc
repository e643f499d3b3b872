#include "regatta/planning/plan/internal/estimate/stage_timeline_memory.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/test_steps.h"

namespace regatta::plan {
namespace {

using workload::PipelineSchedule;
using workload::Strategy;

StageTimeline timeline_of(const GpuStep& one) {
  auto timeline = stage_timeline(one.input());
  EXPECT_TRUE(timeline) << timeline.error().message;
  return timeline ? *std::move(timeline) : StageTimeline{};
}

// The largest difference of a stage's peak and its closed form, as a share.
double farthest(const GpuStep& one) {
  const StageTimeline timeline = timeline_of(one);
  const std::vector<cost::GpuMemory> stages = one.stages();
  EXPECT_EQ(timeline.memory.size(), stages.size());
  double most = 0;
  for (std::size_t stage = 0; stage < timeline.memory.size(); ++stage)
    most = std::max(most, std::abs(peak_of(timeline.memory[stage]) / stages[stage].total() - 1));
  return most;
}

TEST(MemoryOverTime, PeaksAtTheEstimateOfEveryStageUnderEverySchedule) {
  for (const PipelineSchedule schedule : workload::kPipelineSchedules) {
    for (const int pp : {1, 2, 4, 8, 16}) {
      if (schedule == PipelineSchedule::kDualPipe && pp == 1) continue;
      for (const int micro_batches : {pp, 32, 96}) {
        for (const char* stack : {"megatron-core", "megatron-deepspeed-2020"}) {
          for (const auto offload : {workload::Offload::kNone, workload::Offload::kActivations}) {
            GpuStep one;
            one.strategy = {.tp = 8, .pp = pp, .schedule = schedule};
            one.strategy.virtual_stages = schedule == PipelineSchedule::kInterleaved ? 3 : 1;
            one.strategy.offload = offload;
            one.micro_batches = schedule == PipelineSchedule::kDualPipe
                                    ? std::max(2 * pp, micro_batches)
                                    : micro_batches;
            one.stack = cost::find_software_stack(stack);
            SCOPED_TRACE(to_string(one.strategy) + ", micro-batches " +
                         std::to_string(one.micro_batches) + ", " + stack);
            EXPECT_LT(farthest(one), 1e-9);
            const StageTimeline timeline = timeline_of(one);
            double most = 0;
            for (const MemoryCurve& line : timeline.memory)
              most = std::max(most, peak_of(line));
            EXPECT_NEAR(most / timeline.estimate.memory.total(), 1, 1e-9);
          }
        }
      }
    }
  }
}

TEST(MemoryOverTime, PeaksAtTheEstimateWhereStagesHoldDifferentBlocks) {
  for (const PipelineSchedule schedule : {PipelineSchedule::k1F1B, PipelineSchedule::kZbH1}) {
    GpuStep one;
    one.strategy = {.tp = 8, .pp = 10, .schedule = schedule};
    EXPECT_LT(farthest(one), 1e-9);
    one.model = workload::find_model_preset("deepseek-v3")->model;
    one.strategy = {.pp = 16, .dp = 8, .schedule = schedule, .ep = 8};
    EXPECT_LT(farthest(one), 1e-9);
  }
  // The closed form takes the mean of parts with one and two blocks.
  GpuStep one;
  one.strategy = {
      .tp = 8, .pp = 8, .schedule = PipelineSchedule::kInterleaved, .virtual_stages = 5};
  EXPECT_LT(farthest(one), 0.06);
}

TEST(MemoryOverTime, BeginsAndEndsWithWhatIsHeldAlways) {
  GpuStep one;
  one.strategy = {.tp = 8, .pp = 4, .schedule = PipelineSchedule::kZbH1};
  const StageTimeline timeline = timeline_of(one);
  const std::vector<cost::GpuMemory> stages = one.stages();
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const MemoryCurve& line = timeline.memory[stage];
    const double always = stages[stage].total() - stages[stage].activations;
    EXPECT_NEAR(line.back().bytes / always, 1, 1e-12);
    EXPECT_LE(line.back().at, timeline.pipeline_end);
    if (stage > 0) {
      EXPECT_NEAR(line.front().bytes / always, 1, 1e-12);
    }
    for (std::size_t i = 1; i < line.size(); ++i)
      EXPECT_LT(line[i - 1].at, line[i].at);
  }
}

}  // namespace
}  // namespace regatta::plan
