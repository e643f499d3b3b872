#include "regatta/planning/plan/internal/estimate/stage_blocks.h"

#include <string>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/presets.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/internal/estimate/stage_memory.h"
#include "regatta/planning/plan/internal/search/stage_split.h"

namespace regatta::plan {
namespace {

using workload::BlockCounts;
using workload::ModelShape;
using workload::PipelineSchedule;
using workload::Strategy;

// Models whose layers differ, each in its own way.
ModelShape model_named(const std::string& name) {
  const bool predicts = name == "deepseek-v3 with mtp";
  ModelShape model = workload::find_model_preset(predicts ? "deepseek-v3" : name)->model;
  if (predicts) model.mtp_layers = 1;
  return model;
}
constexpr const char* kModels[] = {"gpt-oss-120b", "llama4-maverick", "nemotron3-nano",
                                   "nemotron3-super", "deepseek-v3 with mtp"};

struct Case {
  ModelShape model;
  Strategy strategy{.tp = 2, .pp = 4, .dp = 8, .micro_batch = 1, .ep = 8, .zero = 1};
  topo::ServerType server = *topo::find_server_preset("dgx-h100");
  const cost::SoftwareStack& stack = *cost::find_software_stack("nemo");

  explicit Case(ModelShape shape) : model(std::move(shape)) {}
  EstimateInput input() const {
    return {.model = model,
            .strategy = strategy,
            .global_batch = 128,
            .server = server,
            .stack = stack};
  }
  MicroBatchWork work() const { return micro_batch_work(input(), machine_model(input())); }
  Estimate estimate() const {
    return assemble_estimate(input(), machine_model(input()), work(), 16);
  }
};

TEST(StageBlocks, OfAllStagesAreThoseOfTheModel) {
  for (const char* name : kModels) {
    Case one(model_named(name));
    for (const auto schedule : {PipelineSchedule::k1F1B, PipelineSchedule::kInterleaved,
                                PipelineSchedule::kZbV, PipelineSchedule::kDualPipe}) {
      one.strategy.schedule = schedule;
      one.strategy.virtual_stages = schedule == PipelineSchedule::kInterleaved ? 3 : 1;
      BlockCounts sum;
      for (const BlockCounts& stage : stage_split(one.input(), one.work(), 16).blocks)
        sum += stage;
      EXPECT_EQ(sum.of, all_blocks(one.model).of) << name;
    }
  }
}

TEST(StageBlocks, HaveTheModuleOnceBehindPartsWithoutLayers) {
  Case one(model_named("deepseek-v3 with mtp"));
  one.strategy.schedule = PipelineSchedule::kInterleaved;
  one.strategy.virtual_stages = 2;
  one.strategy.stage_layers = {9, 9, 9, 9, 9, 9, 7, 0};
  const auto stages = stage_split(one.input(), one.work(), 16).blocks;
  BlockCounts sum;
  for (const BlockCounts& stage : stages)
    sum += stage;
  EXPECT_EQ(sum.of, all_blocks(one.model).of);
  EXPECT_EQ(stages.back()[workload::kPredictionKind], 1);
}

TEST(MixedLayers, GivenEvenlyAreTheEvenSplit) {
  for (const char* name : kModels) {
    Case even(model_named(name));
    Case given = even;
    for (int stage = 0; stage < 4; ++stage)
      given.strategy.stage_layers.push_back(stage_layers(even.model, even.strategy, stage).count);
    EXPECT_EQ(even.estimate().step.total(), given.estimate().step.total()) << name;
    EXPECT_EQ(even.estimate().memory.total(), given.estimate().memory.total()) << name;
    EXPECT_EQ(even.estimate().worst_stage, given.estimate().worst_stage) << name;
  }
}

TEST(MixedLayers, HoldMostOnTheWorstStage) {
  for (const char* name : kModels) {
    Case one(model_named(name));
    const auto stages = memory_by_stage(one.input(), machine_model(one.input()), 16);
    double most = 0;
    for (const cost::GpuMemory& stage : stages)
      most = std::max(most, stage.total());
    EXPECT_EQ(one.estimate().memory.total(), most) << name;
    const MicroBatchWork work = one.work();
    EXPECT_EQ(StageMemory(one.input(), work, 16).worst().memory.total(), most) << name;
  }
}

TEST(MixedLayers, TakeNoLessThanTheirLowerBounds) {
  for (const char* name : kModels) {
    Case one(model_named(name));
    for (const int pp : {1, 2, 4}) {
      one.strategy.pp = pp;
      const MicroBatchWork work = one.work();
      const MachineModel machine = machine_model(one.input());
      const Estimate estimate = assemble_estimate(one.input(), machine, work, 16);
      const StrategyLowerBound bound = strategy_lower_bound(one.input(), machine, work, 16);
      EXPECT_LE(bound.time, estimate.step.total()) << name;
      EXPECT_LE(bound.memory, estimate.memory.total()) << name;
      EXPECT_LE(step_time_lower_bound(one.input(), machine, work, 16), estimate.step.total())
          << name;
    }
  }
}

TEST(PredictionModule, MakesTheLastStageSlowerAndLarger) {
  Case without(model_named("deepseek-v3"));
  Case with(model_named("deepseek-v3 with mtp"));
  const MicroBatchWork work = with.work();
  const BlockWork& module = at(work.blocks, workload::kPredictionKind);
  // A block with experts and the output layer again.
  EXPECT_GT(module.time.total(), work.blocks[1].time.total() + work.embedding_and_head.total());
  EXPECT_GT(module.parameters.plain, work.blocks[1].parameters.plain);
  EXPECT_EQ(module.parameters.experts, work.blocks[1].parameters.experts);
  EXPECT_GT(with.estimate().step.total(), without.estimate().step.total());
  const auto last = [](const Case& one) {
    return memory_by_stage(one.input(), machine_model(one.input()), 16).back();
  };
  EXPECT_GT(last(with).weights, last(without).weights);
  EXPECT_GT(last(with).activations, last(without).activations);
}

TEST(AttentionWindow, SavesAttentionAndNothingElse) {
  Case windowed(model_named("gpt-oss-120b"));
  windowed.model.seq = 32768;
  windowed.strategy.pp = 2;  // of nine layers of either kind
  Case all = windowed;
  all.model.window = {};
  const StepBreakdown a = windowed.estimate().step;
  const StepBreakdown b = all.estimate().step;
  // Every second layer sees 128 tokens of 32,768.
  EXPECT_LT(a.attention, b.attention * 0.55);
  EXPECT_GT(a.attention, b.attention * 0.5);
  EXPECT_NEAR(a.matmul / b.matmul, 1, 1e-12);
  EXPECT_NEAR(windowed.estimate().memory.total() / all.estimate().memory.total(), 1, 1e-12);
}

}  // namespace
}  // namespace regatta::plan
