#include "regatta/planning/plan/estimate.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;
using workload::Recompute;
using workload::Strategy;

Result<Estimate> estimate(const Strategy& strategy, int global_batch = 1536,
                          const char* model = "gpt3-175b", const char* server = "dgx-a100-80g") {
  return estimate_step({.model = workload::find_model_preset(model)->model,
                        .strategy = strategy,
                        .global_batch = global_batch,
                        .server = *topo::find_server_preset(server),
                        .stack = *cost::find_software_stack("megatron-deepspeed-fp16")});
}

const Strategy kFull{.tp = 8, .pp = 8, .dp = 8, .micro_batch = 1, .recompute = Recompute::kFull};

Strategy with(Strategy strategy, void (*change)(Strategy&)) {
  change(strategy);
  return strategy;
}

TEST(EstimateStep, PartsSumToTheStep) {
  const auto step = estimate(kFull);
  ASSERT_TRUE(step) << step.error().message;
  const StepBreakdown& part = step->step;
  const double sum = (part.matmul + part.attention + part.passes + part.recompute + part.host +
                      part.tp_comm + part.cp_comm + part.ep_comm + part.pp_comm + part.dp_comm +
                      part.bubble + part.optimizer + part.offload + part.stragglers)
                         .value;
  EXPECT_NEAR(part.total().value / sum, 1, 1e-12);
}

// Narayanan et al., SC'21, section 2.2: (p - 1) / m of the ideal time, divided by v when
// interleaved. The output layer is part of a micro-batch, not of what fills the pipeline.
TEST(EstimateStep, BubbleIsThatOfTheSchedule) {
  const auto plain = estimate(kFull);
  const auto interleaved = estimate(with(kFull, [](Strategy& s) {
    s.schedule = workload::PipelineSchedule::kInterleaved;
    s.virtual_stages = 3;
  }));
  ASSERT_TRUE(plain && interleaved);
  const double micro_batches = 1536.0 / 8;
  const double ideal =
      (plain->step.total() - plain->step.bubble - plain->step.dp_comm - plain->step.optimizer)
          .value;
  EXPECT_NEAR(plain->step.bubble.value / ideal, 7 / micro_batches, 0.002);
  EXPECT_LT(interleaved->step.bubble.value, plain->step.bubble.value / 2.5);
  EXPECT_GT(interleaved->step.pp_comm, plain->step.pp_comm);
  const auto alone = estimate({.tp = 8, .pp = 1, .dp = 8, .recompute = Recompute::kFull});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->step.bubble.value, 0);
  EXPECT_EQ(alone->step.pp_comm.value, 0);
}

TEST(EstimateStep, RecomputationCostsAForwardPassAndItsSums) {
  const auto none = estimate(with(kFull, [](Strategy& s) { s.recompute = Recompute::kNone; }));
  const auto selective =
      estimate(with(kFull, [](Strategy& s) { s.recompute = Recompute::kSelective; }));
  const auto full = estimate(kFull);
  ASSERT_TRUE(none && selective && full);
  EXPECT_EQ(none->step.recompute.value, 0);
  EXPECT_GT(selective->step.recompute.value, 0);
  EXPECT_LT(selective->step.recompute, full->step.recompute * 0.5);
  EXPECT_NEAR(full->step.tp_comm / none->step.tp_comm, 1.5, 1e-9);
}

TEST(EstimateStep, ReplicasThatShareTheOptimizerUpdateLess) {
  const auto whole = estimate(kFull);
  const auto shared = estimate(with(kFull, [](Strategy& s) { s.zero = 1; }));
  ASSERT_TRUE(whole && shared);
  EXPECT_LT(shared->step.optimizer, whole->step.optimizer);
  EXPECT_GT(shared->step.dp_comm, whole->step.dp_comm);
}

TEST(EstimateStep, MoreOfAnythingTakesNoLess) {
  const auto small = estimate(kFull, 768);
  const auto large = estimate(kFull, 1536);
  ASSERT_TRUE(small && large);
  EXPECT_GT(large->step.total(), small->step.total());
  // Tensor parallelism over two servers pays the network.
  const auto wide = estimate({.tp = 16, .pp = 4, .dp = 8, .recompute = Recompute::kFull});
  ASSERT_TRUE(wide);
  EXPECT_GT(wide->step.tp_comm, large->step.tp_comm * 2);
}

Estimate modern(const Strategy& strategy, const char* model, int global_batch = 1024,
                workload::Precision precision = workload::Precision::kBf16) {
  const auto estimate = estimate_step({.model = workload::find_model_preset(model)->model,
                                       .strategy = strategy,
                                       .global_batch = global_batch,
                                       .precision = precision,
                                       .server = *topo::find_server_preset("dgx-h100"),
                                       .stack = *cost::find_software_stack("megatron-core")});
  EXPECT_TRUE(estimate) << estimate.error().message;
  return estimate ? *estimate : Estimate{};
}

TEST(EstimateStep, RanksThatShareASequenceHoldAndComputeLess) {
  const Estimate whole = modern({.tp = 8, .dp = 4, .sequence_parallel = true}, "llama3-8b");
  const Estimate shared =
      modern({.tp = 8, .dp = 4, .sequence_parallel = true, .cp = 2}, "llama3-8b");
  EXPECT_LT(shared.memory.activations, 0.51 * whole.memory.activations);
  EXPECT_NEAR(shared.step.attention / whole.step.attention, 0.5, 1e-9);
  EXPECT_EQ(whole.step.cp_comm.value, 0);
}

TEST(EstimateStep, ExpertsOfManyRanksCostAnExchangeAndSaveMemory) {
  const Estimate alone = modern({.dp = 64, .zero = 1}, "mixtral-8x7b");
  const Estimate spread = modern({.dp = 64, .ep = 8, .zero = 1}, "mixtral-8x7b");
  EXPECT_EQ(alone.step.ep_comm.value, 0);
  EXPECT_GT(spread.step.ep_comm.value, 0);
  EXPECT_LT(spread.memory.weights, 0.3 * alone.memory.weights);
  EXPECT_NEAR(spread.step.matmul / alone.step.matmul, 1, 0.1);
}

Estimate folded(int ep, int etp, int dp = 16) {
  return modern(
      {.tp = 2, .pp = 8, .dp = dp, .sequence_parallel = true, .ep = ep, .etp = etp, .zero = 1},
      "qwen3-235b-a22b");
}

TEST(EstimateStep, WholeExpertsNeedNoSumOverTensorRanks) {
  const Estimate split = folded(16, 2);
  const Estimate whole = folded(32, 1);
  EXPECT_NEAR(whole.memory.weights / split.memory.weights, 1, 1e-9);
  EXPECT_NEAR(whole.step.tp_comm / split.step.tp_comm, 0.5, 0.1);
  EXPECT_NEAR(whole.step.matmul / split.step.matmul, 1, 0.1);
  EXPECT_EQ(folded(16, 2).step.total(), folded(16, 0).step.total());
}

// Ranks of one tensor group hold the same experts: they sum their gradients, though the rest of the
// block has one replica.
TEST(EstimateStep, CopiesOfExpertsWithinATensorGroupSumTheirGradients) {
  EXPECT_GT(folded(1, 1, 1).step.dp_comm.value, 0);
  EXPECT_EQ(folded(2, 1, 1).step.dp_comm.value, 0);
}

StrategyTraffic traffic_of(const Strategy& strategy) {
  const EstimateInput input{.model = workload::find_model_preset("qwen3-235b-a22b")->model,
                            .strategy = strategy,
                            .global_batch = 1024,
                            .server = *topo::find_server_preset("dgx-h100"),
                            .stack = *cost::find_software_stack("megatron-core")};
  return strategy_traffic(input, micro_batch_work(input, machine_model(input)), 64);
}

TEST(StrategyTraffic, OfAFoldHasItsStrides) {
  Strategy strategy{.tp = 2, .pp = 8, .dp = 16, .sequence_parallel = true, .ep = 16, .etp = 1};
  const auto lines = [&](ParallelAxis axis) {
    return traffic_of(strategy)[static_cast<std::size_t>(axis)].lines;
  };
  const std::vector<GroupTraffic> exchange = lines(ParallelAxis::kEp);
  ASSERT_EQ(exchange.size(), 1U);
  EXPECT_EQ(exchange[0].ranks, 16);
  EXPECT_EQ(exchange[0].stride, 1);
  const std::vector<GroupTraffic> sums = lines(ParallelAxis::kDp);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].ranks, 16);
  EXPECT_EQ(sums[0].stride, 2);
  EXPECT_EQ(sums[1].ranks, 2);
  EXPECT_EQ(sums[1].stride, 16);
  // The same exchange of a rank's own tokens, with more of the group in a server.
  const double near = exchange[0].bytes;
  strategy.etp = 2;
  ASSERT_EQ(lines(ParallelAxis::kEp).size(), 1U);
  EXPECT_EQ(lines(ParallelAxis::kEp)[0].stride, 2);
  EXPECT_GT(lines(ParallelAxis::kEp)[0].bytes, near);
}

TEST(EstimateStep, EightBitProductsAreFasterAndAttentionIsNot) {
  const Strategy strategy{.tp = 8, .dp = 8, .sequence_parallel = true};
  const Estimate sixteen = modern(strategy, "llama3-70b", 64);
  const Estimate eight = modern(strategy, "llama3-70b", 64, workload::Precision::kFp8);
  EXPECT_LT(eight.step.matmul, sixteen.step.matmul * 0.65);
  EXPECT_EQ(eight.step.attention, sixteen.step.attention);
  EXPECT_GT(eight.step.passes, sixteen.step.passes);
}

TEST(EstimateStep, SharedWeightsAreGatheredForEveryMicroBatch) {
  const Estimate few = modern({.dp = 64, .micro_batch = 4, .zero = 3}, "llama2-13b", 256);
  const Estimate many = modern({.dp = 64, .micro_batch = 1, .zero = 3}, "llama2-13b", 256);
  EXPECT_GT(many.step.dp_comm, few.step.dp_comm * 3);
  EXPECT_LT(many.memory.total(), few.memory.total());
}

TEST(EstimateStep, SchedulesThatSplitTheBackwardHaveSmallerBubbles) {
  using workload::PipelineSchedule;
  const auto bubble = [](PipelineSchedule schedule) {
    return modern({.tp = 8, .pp = 8, .dp = 2, .schedule = schedule, .sequence_parallel = true},
                  "llama3-70b", 64)
        .step.bubble;
  };
  EXPECT_LT(bubble(PipelineSchedule::kZbH1), bubble(PipelineSchedule::k1F1B) * 0.8);
  EXPECT_LT(bubble(PipelineSchedule::kZbV), bubble(PipelineSchedule::kZbH1));
  EXPECT_LT(bubble(PipelineSchedule::kDualPipe), bubble(PipelineSchedule::k1F1B) * 0.5);
}

// Its two parts each send activations forward and gradients back.
TEST(EstimateStep, ZbVSendsTwiceWhat1F1BSends) {
  using workload::PipelineSchedule;
  const auto messages = [](PipelineSchedule schedule) {
    return modern({.tp = 8, .pp = 8, .dp = 2, .schedule = schedule}, "llama3-70b", 64)
        .step.pp_comm.value;
  };
  EXPECT_GT(messages(PipelineSchedule::k1F1B), 0);
  EXPECT_NEAR(messages(PipelineSchedule::kZbV), 2 * messages(PipelineSchedule::k1F1B), 1e-9);
}

TEST(EstimateStep, OfLayersGivenEvenlyIsThatOfTheEvenSplit) {
  for (const workload::PipelineSchedule schedule : workload::kPipelineSchedules) {
    Strategy strategy{.tp = 8, .pp = 8, .dp = 8, .schedule = schedule};
    if (schedule == workload::PipelineSchedule::kInterleaved) strategy.virtual_stages = 3;
    const auto even = estimate(strategy);
    strategy.stage_layers = std::vector<int>(8, 12);
    const auto given = estimate(strategy);
    ASSERT_TRUE(even && given);
    EXPECT_NEAR(given->step.total() / even->step.total(), 1, 1e-12) << to_string(strategy);
    if (schedule == workload::PipelineSchedule::kZbV) continue;  // has both ends on the first stage
    EXPECT_EQ(given->memory.total(), even->memory.total()) << to_string(strategy);
  }
}

TEST(EstimateStep, AStageOfMoreLayersSetsThePaceAndHoldsMore) {
  Strategy strategy{.tp = 8, .pp = 4, .dp = 8};
  const auto even = estimate(strategy);
  strategy.stage_layers = {24, 30, 24, 18};
  const auto uneven = estimate(strategy);
  ASSERT_TRUE(even && uneven);
  // 30 blocks a micro-batch beside 24 and the output layer.
  EXPECT_NEAR(uneven->step.matmul / even->step.matmul, 30.0 / 24, 0.05);
  EXPECT_EQ(uneven->worst_stage, 1);
  EXPECT_GT(uneven->memory.total(), even->memory.total());
  strategy.stage_layers = {24, 24, 24, 23};
  EXPECT_THAT(estimate(strategy).error().message, HasSubstr("they sum to 95"));
}

// 64 ranks of one rack exchange at NVLink's rate; those of trays that nothing joins over NICs.
TEST(EstimateStep, JoinsTheRanksOfARackByItsLinks) {
  const Strategy wide{.tp = 16, .pp = 1, .dp = 4, .micro_batch = 1, .sequence_parallel = true};
  const auto rack = estimate(wide, 64, "gpt3-175b", "gb200-nvl72");
  const auto trays = estimate(wide, 64, "gpt3-175b", "gb200-tray");
  ASSERT_TRUE(rack && trays);
  EXPECT_LT(rack->step.tp_comm.value, trays->step.tp_comm.value / 2);
  EXPECT_LT(rack->step.dp_comm.value, trays->step.dp_comm.value);
  EXPECT_NEAR(rack->step.stragglers / trays->step.stragglers, 1, 1e-9) << "servers wait alike";
}

TEST(EstimateStep, RefusesWhatItDoesNotKnowOrWhatDoesNotDivide) {
  EXPECT_THAT(estimate({.tp = 7}).error().message, HasSubstr("tp 7 does not divide heads 96"));
  EXPECT_THAT(estimate(kFull, 1536, "gpt3-175b", "dgx-v100").error().message,
              HasSubstr("v100 has no bf16"));
}

// Micro-batches are in flight in a pipeline: their gradients have nowhere to go but a whole buffer.
// Hu et al., 2021, section 4.2: no gradients and no optimizer state of the frozen weights.
TEST(EstimateStep, OfFrozenWeightsComputesHoldsAndSumsNoGradientsOfThem) {
  workload::ModelShape model = workload::find_model_preset("llama3-70b")->model;
  const Strategy strategy{.tp = 8, .pp = 2, .dp = 2, .micro_batch = 1, .sequence_parallel = true};
  const auto estimate_of = [&] {
    const auto estimate = estimate_step({.model = model,
                                         .strategy = strategy,
                                         .global_batch = 32,
                                         .server = *topo::find_server_preset("dgx-h100"),
                                         .stack = *cost::find_software_stack("nemo")});
    EXPECT_TRUE(estimate) << estimate.error().message;
    return estimate ? *estimate : Estimate{};
  };
  const Estimate full = estimate_of();
  model.adapters = {.rank = 16, .qkv = true};
  const Estimate lora = estimate_of();
  EXPECT_NEAR(lora.step.matmul / full.step.matmul, 2.0 / 3, 0.05);
  EXPECT_LT(lora.step.optimizer, full.step.optimizer / 100);
  EXPECT_LT(lora.step.dp_comm, full.step.dp_comm / 10);
  EXPECT_NEAR(lora.memory.weights / full.memory.weights, 1, 0.01);
  EXPECT_LT(lora.memory.optimizer + lora.memory.gradients,
            (full.memory.optimizer + full.memory.gradients) / 1000);
  EXPECT_LT(lora.memory.activations, full.memory.activations);
  // More adapters cost more of everything.
  model.adapters = {.rank = 16, .qkv = true, .proj = true, .fc1 = true, .fc2 = true};
  const Estimate more = estimate_of();
  EXPECT_GT(more.step.matmul, lora.step.matmul);
  EXPECT_GT(more.step.passes, lora.step.passes);
  EXPECT_GT(more.memory.activations, lora.memory.activations);
  EXPECT_GT(more.memory.optimizer, lora.memory.optimizer);
}

// Shared weights are gathered whole, and only the gradients of adapters are scattered.
TEST(EstimateStep, OfFrozenSharedWeightsGathersThem) {
  workload::ModelShape model = workload::find_model_preset("llama3-8b")->model;
  const Strategy strategy{.dp = 64, .micro_batch = 1, .zero = 3};
  const auto exchange = [&] {
    return estimate_step({.model = model,
                          .strategy = strategy,
                          .global_batch = 64,
                          .server = *topo::find_server_preset("dgx-a100-80g"),
                          .stack = *cost::find_software_stack("llm-foundry")})
        ->step.dp_comm;
  };
  model.seq = 128;
  const Seconds full = exchange();
  model.adapters = {.rank = 8, .qkv = true};
  EXPECT_LT(exchange(), full);
  EXPECT_GT(exchange(), full / 2);
}

// State spaces between the experts take the device longer than the host, which is ahead when the
// experts come.
TEST(EstimateStep, TheHostRunsAheadInTheBackwardFromBlockToBlock) {
  workload::ModelShape model = workload::find_model_preset("nemotron3-super")->model;
  model.seq = 4096;
  const Strategy strategy{.dp = 8, .micro_batch = 1, .ep = 8};
  const EstimateInput input{.model = model,
                            .strategy = strategy,
                            .global_batch = 64,
                            .precision = workload::Precision::kFp8,
                            .server = *topo::find_server_preset("dgx-h100"),
                            .stack = *cost::find_software_stack("megatron-bridge")};
  const auto experts_wait = [&] {
    return micro_batch_work(input, machine_model(input)).blocks[2].time.host;
  };
  const Seconds between = experts_wait();
  model.layer_pattern.assign(model.layer_pattern.size(), 'E');
  EXPECT_LT(between, experts_wait());
}

TEST(EstimateStep, OfPackedSamplesHasLessAttention) {
  workload::ModelShape model = workload::find_model_preset("llama3-8b")->model;
  const Strategy strategy{.dp = 8, .micro_batch = 1};
  const auto step = [&] {
    return estimate_step({.model = model,
                          .strategy = strategy,
                          .global_batch = 64,
                          .server = *topo::find_server_preset("dgx-h100"),
                          .stack = *cost::find_software_stack("nemo")})
        ->step;
  };
  const StepBreakdown whole = step();
  model.packed = 512;
  const StepBreakdown packed = step();
  EXPECT_LT(packed.attention, whole.attention / 4);
  EXPECT_EQ(packed.matmul, whole.matmul);
}

TEST(EstimateStep, Zero2KeepsWholeGradientsInPipelines) {
  const auto gradients = [](int zero, int pp) {
    Strategy strategy = kFull;
    strategy.pp = pp;
    strategy.dp = 64 / pp;
    strategy.zero = zero;
    return estimate(strategy)->memory.gradients;
  };
  EXPECT_EQ(gradients(2, 8), gradients(1, 8));
  EXPECT_LT(gradients(3, 8), gradients(2, 8));
  EXPECT_LT(gradients(2, 1), gradients(1, 1) / 8);
}

}  // namespace
}  // namespace regatta::plan
