#include "regatta/model/cost/memory.h"

#include <gtest/gtest.h>

#include "regatta/model/cost/test_model.h"

namespace regatta::cost {
namespace {

workload::Strategy strategy(int tp, int pp, int micro_batch) {
  workload::Strategy s;
  s.tp = tp;
  s.pp = pp;
  s.micro_batch = micro_batch;
  return s;
}

TEST(RankParameters, OfOneRankAreThoseOfTheModel) {
  workload::ModelShape model = small_model();
  EXPECT_EQ(rank_parameters(model, strategy(1, 1, 1), 0), workload::total_parameters(model));
  model.tied_embeddings = true;
  EXPECT_EQ(rank_parameters(model, strategy(1, 1, 1), 0), workload::total_parameters(model));
}

TEST(RankParameters, OfAllStagesAddUpToTheModel) {
  const workload::ModelShape model = small_model();
  for (const int pp : {2, 3, 4, 8}) {
    long long total = 0;
    for (int stage = 0; stage < pp; ++stage)
      total += rank_parameters(model, strategy(1, pp, 1), stage);
    EXPECT_EQ(total, workload::total_parameters(model));
  }
}

TEST(RankParameters, AreThoseOfTheLayersThatAStageIsGiven) {
  const workload::ModelShape model = small_model();
  workload::Strategy uneven = strategy(1, 2, 1);
  const auto difference = [&](int stage) {
    return rank_parameters(model, uneven, stage) - rank_parameters(model, strategy(1, 2, 1), stage);
  };
  uneven.stage_layers = {model.layers / 2 + 1, model.layers / 2 - 1};
  EXPECT_GT(difference(0), 0);
  EXPECT_EQ(difference(0), -difference(1));
}

TEST(BlockActivations, KeepTheInputAloneWithRecomputation) {
  workload::Strategy s = strategy(1, 1, 2);
  s.recompute = workload::Recompute::kFull;
  EXPECT_EQ(block_activations(small_model(), s, workload::Precision::kFp32).value,
            4LL * 2 * 256 * 256);
}

TEST(RankMemory, GrowsWithTheMicroBatchAndFallsWithEveryDegree) {
  const workload::ModelShape model = small_model();
  const auto total = [&](int tp, int pp, int micro_batch) {
    return rank_memory(model, strategy(tp, pp, micro_batch), workload::Precision::kFp32, 0, 8)
        .total()
        .value;
  };
  for (const int micro_batch : {1, 2, 4}) {
    EXPECT_LT(total(1, 1, micro_batch), total(1, 1, 2 * micro_batch));
    EXPECT_LT(total(2, 1, micro_batch), total(1, 1, micro_batch));
    EXPECT_LT(total(1, 2, micro_batch), total(1, 1, micro_batch));
  }
}

TEST(RankMemory, HoldsMasterWeightsOnlyInBf16) {
  const workload::ModelShape model = small_model();
  const long long n = workload::total_parameters(model);
  const workload::Strategy s = strategy(1, 1, 1);
  EXPECT_EQ(rank_memory(model, s, workload::Precision::kFp32, 0, 1).weights.value, 4 * n);
  EXPECT_EQ(rank_memory(model, s, workload::Precision::kBf16, 0, 1).weights.value, 6 * n);
  EXPECT_EQ(rank_memory(model, s, workload::Precision::kFp32, 0, 1).optimizer.value, 8 * n);
}

TEST(RankMemory, FallsWithRecomputation) {
  const workload::ModelShape model = small_model();
  workload::Strategy s = strategy(1, 4, 2);
  const long long kept = rank_memory(model, s, workload::Precision::kFp32, 0, 8).total().value;
  s.recompute = workload::Recompute::kFull;
  EXPECT_LT(rank_memory(model, s, workload::Precision::kFp32, 0, 8).total().value, kept);
}

}  // namespace
}  // namespace regatta::cost
