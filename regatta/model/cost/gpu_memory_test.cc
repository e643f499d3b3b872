#include <gtest/gtest.h>

#include "regatta/model/cost/memory.h"
#include "regatta/model/workload/model.h"

namespace regatta::cost {
namespace {

using workload::Precision;
using workload::Recompute;

const workload::ModelShape& gpt3() {
  return workload::find_model_preset("gpt3-175b")->model;
}

BlockMemory block(const char* stack, int tp, bool sequence_parallel, Recompute recompute) {
  return gpu_block_memory(*find_software_stack(stack),
                          {.model = gpt3(), .tp = tp, .sequence_parallel = sequence_parallel},
                          recompute, Precision::kFp16);
}

// Korthikanti et al., 2022, equations 1 to 5 and table 2.
TEST(GpuBlockMemory, IsThatOfTheEquationsOfKorthikanti) {
  const double s = gpt3().seq;
  const double h = gpt3().hidden;
  const double a = gpt3().heads;
  const double sbh = s * h;
  const double t = 8;
  const char* stack = "megatron-lm-2022";
  EXPECT_NEAR(block(stack, 1, false, Recompute::kNone).kept / sbh, 34 + 5 * a * s / h, 1e-9);
  EXPECT_NEAR(block(stack, 8, false, Recompute::kNone).kept / sbh,
              10 + 24 / t + 5 * a * s / (h * t), 1e-9);
  EXPECT_NEAR(block(stack, 8, true, Recompute::kNone).kept / sbh, 34 / t + 5 * a * s / (h * t),
              1e-9);
  EXPECT_NEAR(block(stack, 8, false, Recompute::kSelective).kept / sbh, 10 + 24 / t, 1e-9);
  EXPECT_NEAR(block(stack, 8, true, Recompute::kSelective).kept / sbh, 34 / t, 1e-9);
  EXPECT_NEAR(block(stack, 8, false, Recompute::kFull).kept / sbh, 2, 1e-9);
}

TEST(GpuBlockMemory, FusedAttentionKeepsNoScores) {
  const double plain = block("megatron-lm-2022", 8, true, Recompute::kNone).kept;
  const double fused = block("megatron-core", 8, true, Recompute::kNone).kept;
  EXPECT_LT(fused, 0.35 * plain);
  EXPECT_LT(block("megatron-core", 8, true, Recompute::kSelective).kept, fused);
}

double experts_block(const char* stack, Recompute recompute, bool has_experts = true,
                     Precision precision = Precision::kFp8) {
  const workload::ModelShape& model = workload::find_model_preset("deepseek-v3")->model;
  return gpu_block_memory(
             *find_software_stack(stack), {.model = model}, recompute, precision,
             {.mlp = has_experts ? workload::BlockMlp::kExperts : workload::BlockMlp::kPlain})
             .kept /
         model.seq;
}

// DeepSeek-V3: 8 visits of 7168, experts of 2048 and a shared one, 128 heads of 192, 192 and 128.
TEST(GpuBlockMemory, OfExpertsShrinksWithEachStepOfRecomputation) {
  const double none = experts_block("megatron-bridge", Recompute::kNone);
  const double pointwise = experts_block("megatron-bridge", Recompute::kPointwise);
  const double experts = experts_block("megatron-bridge", Recompute::kExperts);
  const double full = experts_block("megatron-bridge", Recompute::kFull);
  const double heads = 2 * 128 * (2 * 192 + 128);
  EXPECT_NEAR(none - pointwise, heads + 9 * 2048 + 2 * 2 * 7168, 1);
  EXPECT_NEAR(pointwise - experts, 8 * 7168 + 9 * 2048 * 2 * 2, 1);
  EXPECT_LT(full, experts);
  EXPECT_GT(full, 0);
}

TEST(GpuBlockMemory, OfABlockWithoutExpertsIsAllKeptWhereOnlyExpertsAreRecomputed) {
  EXPECT_EQ(experts_block("megatron-bridge", Recompute::kExperts, false),
            experts_block("megatron-bridge", Recompute::kNone, false));
}

TEST(GpuBlockMemory, KeepsOperandsInEightBitsAndNoOutputsOfExpertsWhereTheStackDoes) {
  const double visits = 8 * 7168;
  EXPECT_NEAR(
      experts_block("nemo", Recompute::kNone) - experts_block("megatron-bridge", Recompute::kNone),
      visits * 3 + 9 * 2048, 1);
  EXPECT_NEAR(experts_block("nemo", Recompute::kNone, true, Precision::kBf16) -
                  experts_block("megatron-bridge", Recompute::kNone, true, Precision::kBf16),
              visits * 2, 1);
}

// Mixtral on two ranks of 16 bits: 2 visits of 4096 and of three widths of 14336. With experts
// whole a rank keeps the visits of its half of the tokens; as halves, those of all tokens, which
// both gather, of half the widths.
TEST(GpuBlockMemory, OfExpertsOnSeveralRanksHoldsTheTokensThatTheyGather) {
  const workload::ModelShape& model = workload::find_model_preset("mixtral-8x7b")->model;
  const auto kept = [&](int etp, bool shares_tokens) {
    return gpu_block_memory(
               *find_software_stack("megatron-bridge"),
               {.model = model, .tp = 2, .sequence_parallel = shares_tokens, .etp = etp},
               Recompute::kNone, Precision::kBf16, {.mlp = workload::BlockMlp::kExperts})
               .kept /
           model.seq;
  };
  const auto plain = [&](bool shares_tokens) {
    return gpu_block_memory(*find_software_stack("megatron-bridge"),
                            {.model = model, .tp = 2, .sequence_parallel = shares_tokens},
                            Recompute::kNone, Precision::kBf16, {})
               .kept /
           model.seq;
  };
  const double widths = 2.0 * 3 * 14336;
  const double visits = 2 * (2.0 * 4096);
  const double of_plain = 2.0 * 3 * 14336 / 2;  // the widths of the plain MLP, divided by tp
  EXPECT_NEAR(kept(1, true) - plain(true), (visits + 2 * widths) / 2 - of_plain, 1e-6);
  EXPECT_NEAR(kept(2, true) - plain(true), visits + 2 * widths / 2 - of_plain, 1e-6);
  // Tensor ranks that hold the same tokens have nothing to gather.
  EXPECT_NEAR(kept(2, false) - plain(false), visits + 2 * widths / 2 - of_plain, 1e-6);
}

GpuMemory state(const workload::Strategy& strategy, const RankParameters& parameters) {
  return gpu_state_memory(*find_software_stack("megatron-lm-2022"), parameters, strategy,
                          Precision::kBf16);
}

// 2 bytes of weight, 4 of gradient, 12 of Adam and master weight a parameter.
TEST(GpuStateMemory, IsDividedByTheReplicasThatShareIt) {
  const RankParameters parameters{.plain = 1e9};
  EXPECT_DOUBLE_EQ(state({.dp = 8}, parameters).optimizer, 12e9);
  EXPECT_DOUBLE_EQ(state({.dp = 8, .zero = 1}, parameters).optimizer, 1.5e9);
  EXPECT_DOUBLE_EQ(state({.dp = 8, .zero = 1}, parameters).gradients, 4e9);
  EXPECT_DOUBLE_EQ(state({.dp = 8, .zero = 2}, parameters).gradients, 0.5e9);
  EXPECT_DOUBLE_EQ(state({.dp = 8, .zero = 2}, parameters).weights, 2e9);
  EXPECT_DOUBLE_EQ(state({.dp = 8, .zero = 3}, parameters).weights, 0.25e9);
  EXPECT_DOUBLE_EQ(state({.dp = 8, .zero = 3, .shard_ranks = 4}, parameters).weights, 0.5e9);
  EXPECT_DOUBLE_EQ(state({.dp = 4, .cp = 2, .zero = 1}, parameters).optimizer, 1.5e9);
  EXPECT_DOUBLE_EQ(state({.dp = 8, .offload = workload::Offload::kOptimizer}, parameters).optimizer,
                   0);
}

TEST(GpuStateMemory, ExpertsHaveFewerReplicas) {
  const RankParameters parameters{.plain = 1e9, .experts = 1e9};
  EXPECT_DOUBLE_EQ(state({.dp = 8, .ep = 4, .zero = 1}, parameters).optimizer, 12e9 / 8 + 12e9 / 2);
}

// 16 ranks hold all experts once, so nobody shares the state of 16 ep ranks; 8 share that of 4 ep.
TEST(GpuStateMemory, FoldedExpertsHaveTheCopiesThatEpLeaves) {
  const RankParameters parameters{.plain = 1e9, .experts = 1e9};
  const auto optimizer = [&](int ep, int etp) {
    return state({.tp = 2, .dp = 8, .ep = ep, .etp = etp, .zero = 1}, parameters).optimizer;
  };
  EXPECT_DOUBLE_EQ(optimizer(16, 1), 12e9 / 8 + 12e9);
  EXPECT_DOUBLE_EQ(optimizer(2, 1), 12e9 / 8 + 12e9 / 8);
  EXPECT_DOUBLE_EQ(optimizer(1, 1), 12e9 / 8 + 12e9 / 16);
  EXPECT_DOUBLE_EQ(optimizer(4, 0), optimizer(4, 2));
}

}  // namespace
}  // namespace regatta::cost
