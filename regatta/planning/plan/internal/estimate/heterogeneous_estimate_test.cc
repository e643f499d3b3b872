#include "regatta/planning/plan/internal/estimate/heterogeneous_estimate.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/test_heterogeneous.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;
using workload::Recompute;
using workload::Strategy;

struct Case {
  const char* model = "gpt3-175b";
  int global_batch = 1536;
  const char* stack = "megatron-deepspeed-fp16";
  workload::Precision precision = workload::Precision::kBf16;
};

Result<HeterogeneousEstimate> mixed(const topo::Cluster& cluster, const Strategy& strategy,
                                    const Case& job = {},
                                    const HeterogeneousSplit* split = nullptr) {
  const HeterogeneousInput input{.model = workload::find_model_preset(job.model)->model,
                                 .strategy = strategy,
                                 .global_batch = job.global_batch,
                                 .precision = job.precision,
                                 .cluster = cluster,
                                 .stack = *cost::find_software_stack(job.stack)};
  return estimate_heterogeneous(input, split != nullptr ? *split : even_split(input));
}

// Layers that the stages divide, stages of whole servers. Sums of gradients hide behind the work of
// their own stage here, behind that of the slowest there.
TEST(EstimateHeterogeneous, EqualsTheEstimateOfEqualServers) {
  const Strategy strategies[] = {
      {.tp = 8, .pp = 8, .dp = 8, .recompute = Recompute::kFull},
      {.tp = 8, .pp = 1, .dp = 64, .zero = 1},
      {.tp = 4, .pp = 4, .dp = 32, .recompute = Recompute::kSelective, .zero = 2},
      {.tp = 16, .pp = 4, .dp = 8, .micro_batch = 2, .sequence_parallel = true},
      {.tp = 8, .pp = 32, .dp = 2, .recompute = Recompute::kFull},
      {.tp = 1, .pp = 4, .dp = 128}};
  for (const char* stack : {"megatron-deepspeed-fp16", "megatron-core"}) {
    for (const Strategy& strategy : strategies) {
      const topo::Cluster cluster = heterogeneous_cluster({{"dgx-a100-80g", 64}});
      const auto one = mixed(cluster, strategy, {.stack = stack});
      const auto same = estimate_step({.model = workload::find_model_preset("gpt3-175b")->model,
                                       .strategy = strategy,
                                       .global_batch = 1536,
                                       .server = *topo::find_server_preset("dgx-a100-80g"),
                                       .stack = *cost::find_software_stack(stack)});
      ASSERT_TRUE(one && same) << (one ? "" : one.error().message);
      const double error = cost::find_software_stack(stack)->traits.dp_overlap > 0 ? 5e-3 : 1e-9;
      EXPECT_NEAR(one->step.total() / same->step.total(), 1, error) << to_string(strategy);
      EXPECT_NEAR(one->step.bubble.value, same->step.bubble.value, 1e-6) << to_string(strategy);
      EXPECT_NEAR(one->worst().memory.total() / same->memory.total(), 1, 1e-9)
          << to_string(strategy);
    }
  }
}

// The A100 are the slower half; bf16 in both.
const Strategy kHalves{.tp = 8, .pp = 8, .dp = 4, .recompute = Recompute::kFull};

TEST(EstimateHeterogeneous, LiesBetweenItsSlowerAndItsFasterServersAlone) {
  const Case job{.stack = "megatron-core"};
  const auto slow = mixed(heterogeneous_cluster({{"dgx-a100-80g", 32}}), kHalves, job);
  const auto fast = mixed(heterogeneous_cluster({{"dgx-h100", 32}}), kHalves, job);
  const auto both =
      mixed(heterogeneous_cluster({{"dgx-a100-80g", 16}, {"dgx-h100", 16}}), kHalves, job);
  ASSERT_TRUE(slow && fast && both);
  EXPECT_GT(both->step.total(), fast->step.total());
  EXPECT_LT(both->step.total(), slow->step.total());
  EXPECT_EQ(both->stages[0].device, "a100-sxm4-80g");
  EXPECT_EQ(both->stages[7].device, "h100-sxm");
  EXPECT_GT(both->stages[0].slot, both->stages[4].slot);
}

TEST(EstimateHeterogeneous, GivesTheStepOfTheSlowestReplica) {
  const Strategy wide{.tp = 8, .pp = 1, .dp = 4, .zero = 1};
  const Case job{.model = "llama2-13b", .global_batch = 128, .stack = "megatron-core"};
  const topo::Cluster cluster = heterogeneous_cluster({{"dgx-a100-80g", 2}, {"dgx-h100", 2}});
  const HeterogeneousSplit even{.layers = {40}, .micro_batches = {32, 32, 32, 32}};
  const HeterogeneousSplit uneven{.layers = {40}, .micro_batches = {20, 20, 44, 44}};
  const auto slow = mixed(cluster, wide, job, &even);
  const auto fast = mixed(cluster, wide, job, &uneven);
  ASSERT_TRUE(slow && fast) << slow.error().message;
  EXPECT_LT(fast->step.total(), slow->step.total());
}

TEST(EstimateHeterogeneous, HoldsEveryStageAgainstItsOwnDevices) {
  const topo::Cluster cluster = heterogeneous_cluster({{"h200-8", 2}, {"dgx-h100", 2}});
  const auto estimate =
      mixed(cluster, {.tp = 8, .pp = 4, .dp = 1, .recompute = Recompute::kFull},
            {.model = "llama2-70b", .global_batch = 64, .stack = "megatron-core"});
  ASSERT_TRUE(estimate) << estimate.error().message;
  EXPECT_GT(estimate->stages[0].memory.total(), estimate->stages[2].memory.total());
  EXPECT_GT(estimate->stages[0].capacity, estimate->stages[2].capacity);
  EXPECT_GE(estimate->worst_stage, 2);
}

// Two racks of 18 trays of four devices.
TEST(EstimateHeterogeneous, JoinsServersByTheLinksOfTheirDomain) {
  const Strategy strategy{.tp = 8, .pp = 6, .dp = 3, .sequence_parallel = true, .zero = 1};
  const auto racks = mixed(heterogeneous_cluster({{"gb200-nvl72", 36}}), strategy);
  const auto same = estimate_step({.model = workload::find_model_preset("gpt3-175b")->model,
                                   .strategy = strategy,
                                   .global_batch = 1536,
                                   .server = *topo::find_server_preset("gb200-nvl72"),
                                   .stack = *cost::find_software_stack("megatron-deepspeed-fp16")});
  ASSERT_TRUE(racks && same) << (racks ? "" : racks.error().message);
  // Stages of one rack send each other messages over its links here, over NICs there.
  EXPECT_NEAR(racks->step.total() / same->step.total(), 1, 5e-3);
  EXPECT_NEAR(racks->step.tp_comm / same->step.tp_comm, 1, 1e-9);
  const Strategy halves{.tp = 8, .pp = 2, .dp = 9};
  const auto joined = mixed(heterogeneous_cluster({{"gb200-nvl72", 18}, {"dgx-b200", 9}}), halves);
  const auto apart = mixed(heterogeneous_cluster({{"gb200-tray", 18}, {"dgx-b200", 9}}), halves);
  ASSERT_TRUE(joined && apart);
  EXPECT_LT(joined->step.tp_comm.value, apart->step.tp_comm.value / 2);
}

TEST(EstimateHeterogeneous, RefusesWhatDoesNotFitTheJobOrTheCluster) {
  const topo::Cluster cluster = heterogeneous_cluster({{"dgx-a100-80g", 16}, {"dgx-h100", 16}});
  const auto refusal = [&](const Strategy& strategy, const HeterogeneousSplit* split = nullptr) {
    return mixed(cluster, strategy, {}, split).error().message;
  };
  EXPECT_THAT(refusal({.tp = 8, .pp = 8, .dp = 8}),
              HasSubstr("512 ranks where cluster test has 256"));
  EXPECT_THAT(refusal({.tp = 8, .pp = 8, .dp = 4, .schedule = workload::PipelineSchedule::kZbH1}),
              HasSubstr("leave schedule and virtual_stages out"));
  const HeterogeneousSplit short_of_layers{.layers = {1, 1}, .micro_batches = {1}};
  EXPECT_THAT(refusal(kHalves, &short_of_layers), HasSubstr("2 stages hold 2 layers"));
  const auto old = mixed(heterogeneous_cluster({{"dgx-v100", 32}}), kHalves);
  EXPECT_THAT(old.error().message, HasSubstr("v100 has no bf16"));
}

}  // namespace
}  // namespace regatta::plan
