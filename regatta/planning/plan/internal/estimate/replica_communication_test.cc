#include "regatta/planning/plan/internal/estimate/replica_communication.h"

#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"

namespace regatta::plan {
namespace {

TEST(GradientSum, IsAsTheStackThePrecisionAndTheScheduleHaveIt) {
  const cost::StackTraits& deepspeed = cost::find_software_stack("megatron-deepspeed-fp16")->traits;
  const cost::StackTraits& megatron = cost::find_software_stack("megatron-lm-2022")->traits;
  using workload::Precision;
  const auto sum = [](const cost::StackTraits& traits, int zero, int pp, Precision precision) {
    return gradient_sum(traits, {.pp = pp, .zero = zero}, precision, 16);
  };
  EXPECT_EQ(sum(deepspeed, 1, 1, Precision::kFp16).kind, cost::Collective::kAllReduce);
  EXPECT_EQ(sum(megatron, 1, 1, Precision::kFp16).kind, cost::Collective::kReduceScatter);
  EXPECT_EQ(sum(megatron, 0, 1, Precision::kFp16).kind, cost::Collective::kAllReduce);
  EXPECT_EQ(sum(megatron, 1, 1, Precision::kFp16).bytes, 2);
  EXPECT_EQ(sum(megatron, 1, 1, Precision::kBf16).bytes, 4);
  EXPECT_EQ(sum(megatron, 2, 1, Precision::kFp16).rounds, 16);
  EXPECT_EQ(sum(megatron, 2, 8, Precision::kFp16).rounds, 1);
}

Seconds exposed_on(int replicas, int zero, bool overlap = true) {
  const workload::Strategy strategy{.tp = 8, .dp = replicas, .overlap = overlap, .zero = zero};
  const EstimateInput input{.model = workload::find_model_preset("llama2-13b")->model,
                            .strategy = strategy,
                            .global_batch = 1024,
                            .server = *topo::find_server_preset("dgx-a100-80g"),
                            .stack = *cost::find_software_stack("megatron-core")};
  const MachineModel machine = machine_model(input);
  const cost::RankParameters held{.plain = 13e9 / 8, .largest_block = 3e8 / 8};
  return ReplicaCommunication(input, machine, held, 4).exposed_beside(Seconds{1}, Seconds{0.35});
}

TEST(ReplicaCommunication, IsNothingForOneReplicaAndHiddenWhereTheJobAllows) {
  EXPECT_EQ(exposed_on(1, 1).value, 0);
  EXPECT_GT(exposed_on(16, 1).value, 0);
  EXPECT_LT(exposed_on(16, 1), exposed_on(16, 1, false));
}

TEST(ReplicaCommunication, GathersOfSharedWeightsRepeatForEachMicroBatch) {
  EXPECT_GT(exposed_on(16, 3, false), exposed_on(16, 1, false) * 2.0);
}

// Experts of a rank, the same number of bytes over ranks that lie side by side or a server apart.
Seconds experts_on(int ep) {
  const workload::Strategy strategy{.dp = 64, .overlap = false, .ep = ep, .zero = 1};
  const EstimateInput input{.model = workload::find_model_preset("mixtral-8x7b")->model,
                            .strategy = strategy,
                            .global_batch = 1024,
                            .server = *topo::find_server_preset("dgx-a100-80g"),
                            .stack = *cost::find_software_stack("megatron-core")};
  const MachineModel machine = machine_model(input);
  const cost::RankParameters held{.experts = 4e9};
  return ReplicaCommunication(input, machine, held, 4).exposed_beside(Seconds{1}, Seconds{0.35});
}

TEST(ReplicaCommunication, OfExpertsSharesTheNicsWithTheOtherRanksOfAServer) {
  // One of eight ranks of a server a ring through the NICs of all, or each its own.
  EXPECT_GT(experts_on(8) / experts_on(1), 4);
  EXPECT_LT(experts_on(8) / experts_on(1), 8.1);
}

}  // namespace
}  // namespace regatta::plan
