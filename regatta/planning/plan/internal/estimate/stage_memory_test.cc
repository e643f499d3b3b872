#include "regatta/planning/plan/internal/estimate/stage_memory.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/model/workload/blocks.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/test_steps.h"

namespace regatta::plan {
namespace {

using workload::PipelineSchedule;
using workload::Strategy;

Estimate estimate_of(const GpuStep& one) {
  const auto found = estimate_step(one.input());
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : Estimate{};
}

GpuStep staged(int pp, PipelineSchedule schedule = PipelineSchedule::k1F1B) {
  GpuStep one;
  one.strategy = {.tp = 8, .pp = pp, .schedule = schedule};
  if (schedule == PipelineSchedule::kInterleaved) one.strategy.virtual_stages = 2;
  return one;
}

TEST(StageMemory, OfTheWorstStageIsTheEstimates) {
  std::mt19937 random(11);
  const auto below = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  int uneven = 0;
  for (int i = 0; i < 3000; ++i) {
    const PipelineSchedule schedule =
        workload::kPipelineSchedules[random() % workload::kPipelineSchedules.size()];
    GpuStep one = staged(2 * (1 + below(20)), schedule);
    if (below(3) == 0) one.model = workload::find_model_preset("deepseek-v3")->model;
    one.model.layers = 4 * one.strategy.pp + below(60);
    one.micro_batches = 2 * (1 + below(60));
    if (schedule == PipelineSchedule::kDualPipe) one.micro_batches += 2 * one.strategy.pp;
    if (schedule == PipelineSchedule::kInterleaved) one.strategy.virtual_stages = 2 + below(3);
    one.strategy.zero = below(2);
    SCOPED_TRACE(to_string(one.strategy) + ", layers " + std::to_string(one.model.layers) +
                 ", micro-batches " + std::to_string(one.micro_batches));
    const Estimate estimate = estimate_of(one);
    const std::vector<cost::GpuMemory> stages = one.stages();
    const auto found = static_cast<std::size_t>(estimate.worst_stage);
    std::size_t most = found;
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
      if (stages[stage].total() > stages[most].total()) most = stage;
    ASSERT_EQ(most, found);
    ASSERT_EQ(estimate.memory.total(), stages[most].total());
    const StrategyLowerBound bound = strategy_lower_bound(
        one.input(), machine_model(one.input()),
        micro_batch_work(one.input(), machine_model(one.input())), one.micro_batches);
    ASSERT_LE(bound.memory, estimate.memory.total());
    uneven += most != 0 && most + 1 != stages.size() ? 1 : 0;
  }
  EXPECT_GT(uneven, 50);  // a stage in the middle holds most
}

// 96 blocks on 64 stages: 32 in the middle hold two, and the 16th of them 48 micro-batches.
TEST(StageMemory, MiddleStagesWithMoreBlocksMayHoldMost) {
  GpuStep one = staged(64);
  one.micro_batches = 256;
  const std::vector<cost::GpuMemory> stages = one.stages();
  EXPECT_NEAR(stages[16].activations / stages[0].activations, 2.0 * 48 / 64, 1e-9);
  EXPECT_EQ(estimate_of(one).worst_stage, 16);
}

TEST(StageMemory, TablesAreWhereTheModelBeginsAndEnds) {
  const auto weights = [](PipelineSchedule schedule, bool is_tied) {
    GpuStep one = staged(4, schedule);
    one.model.tied_embeddings = is_tied;
    std::vector<double> tables;
    const std::vector<cost::GpuMemory> stages = one.stages();
    const double table = 2.0 * one.model.vocab * one.model.hidden / one.strategy.tp;
    for (const cost::GpuMemory& stage : stages)
      tables.push_back((stage.weights - stages[1].weights) / table);
    return tables;
  };
  EXPECT_EQ(weights(PipelineSchedule::k1F1B, false), (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(weights(PipelineSchedule::kZbV, false), (std::vector<double>{2, 0, 0, 0}));
  EXPECT_EQ(weights(PipelineSchedule::kZbV, true), (std::vector<double>{1, 0, 0, 0}));
  EXPECT_EQ(weights(PipelineSchedule::kDualPipe, false), (std::vector<double>{2, 0, 0, 2}));
  EXPECT_EQ(weights(PipelineSchedule::kDualPipe, true), (std::vector<double>{1, 0, 0, 1}));
}

// 61 layers in 32 parts, of which the last holds the module and the loss alone.
TEST(StageMemory, OfAModuleThatPredictsIsOnTheLastStageWithItsTable) {
  GpuStep one;
  one.model = workload::find_model_preset("deepseek-v3")->model;
  one.strategy = {.pp = 8,
                  .dp = 32,
                  .schedule = PipelineSchedule::kInterleaved,
                  .virtual_stages = 4,
                  .ep = 32,
                  .stage_layers = std::vector<int>(32, 2)};
  one.strategy.stage_layers.front() = 1;
  one.strategy.stage_layers.back() = 0;
  const std::vector<cost::GpuMemory> without = one.stages();
  one.model.mtp_layers = 1;
  const std::vector<cost::GpuMemory> with = one.stages();
  for (std::size_t stage = 0; stage + 1 < 8; ++stage)
    EXPECT_EQ(with[stage].total(), without[stage].total()) << stage;
  const workload::LayerParameters module =
      block_parameters(one.model, block_kind(one.model, workload::kPredictionKind));
  const double table = static_cast<double>(one.model.vocab) * one.model.hidden;
  EXPECT_NEAR(with[7].weights - without[7].weights,
              2 * (static_cast<double>(module.total() - module.of_experts()) + table +
                   static_cast<double>(module.of_experts()) / 32),
              1e-6 * table);
  EXPECT_GT(with[7].activations, without[7].activations);
}

}  // namespace
}  // namespace regatta::plan
