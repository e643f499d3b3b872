#include "regatta/plan/mixed.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/topo/presets.h"
#include "regatta/workload/model_presets.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;
using workload::Recompute;
using workload::Strategy;

struct Some {
  const char* server;
  int count;
};

topo::Cluster cluster_of(const std::vector<Some>& servers) {
  topo::Cluster cluster;
  cluster.name = "test";
  for (const Some& some : servers) {
    cluster.server_types[some.server] = *topo::find_server_preset(some.server);
    for (int i = 0; i < some.count; ++i)
      cluster.servers.push_back(
          {.name = "s" + std::to_string(cluster.servers.size()), .type = some.server});
  }
  return cluster;
}

struct Case {
  const char* model = "gpt3-175b";
  int global_batch = 1536;
  const char* stack = "megatron-deepspeed-fp16";
  workload::Precision precision = workload::Precision::kBf16;
};

Result<MixedEstimate> mixed(const topo::Cluster& cluster, const Strategy& strategy,
                            const Case& job = {}, const MixedSplit* split = nullptr) {
  const MixedInput input{.model = workload::find_model_preset(job.model)->model,
                         .strategy = strategy,
                         .global_batch = job.global_batch,
                         .precision = job.precision,
                         .cluster = cluster,
                         .stack = *cost::find_stack(job.stack)};
  return estimate_mixed(input, split != nullptr ? *split : even_split(input));
}

// Layers that the stages divide, stages of whole servers. Sums of gradients hide behind the work of
// their own stage here, behind that of the slowest there.
TEST(EstimateMixed, EqualsTheEstimateOfEqualServers) {
  const Strategy strategies[] = {
      {.tp = 8, .pp = 8, .dp = 8, .recompute = Recompute::kFull},
      {.tp = 8, .pp = 1, .dp = 64, .zero = 1},
      {.tp = 4, .pp = 4, .dp = 32, .recompute = Recompute::kSelective, .zero = 2},
      {.tp = 16, .pp = 4, .dp = 8, .micro_batch = 2, .sequence_parallel = true},
      {.tp = 8, .pp = 32, .dp = 2, .recompute = Recompute::kFull},
      {.tp = 1, .pp = 4, .dp = 128}};
  for (const char* stack : {"megatron-deepspeed-fp16", "megatron-core"}) {
    for (const Strategy& strategy : strategies) {
      const topo::Cluster cluster = cluster_of({{"dgx-a100-80g", 64}});
      const auto one = mixed(cluster, strategy, {.stack = stack});
      const auto same = estimate_step({.model = workload::find_model_preset("gpt3-175b")->model,
                                       .strategy = strategy,
                                       .global_batch = 1536,
                                       .server = *topo::find_server_preset("dgx-a100-80g"),
                                       .stack = *cost::find_stack(stack)});
      ASSERT_TRUE(one && same) << (one ? "" : one.error().message);
      const double error = cost::find_stack(stack)->traits.dp_overlap > 0 ? 5e-3 : 1e-9;
      EXPECT_NEAR(one->step.total() / same->step.total(), 1, error) << to_string(strategy);
      EXPECT_NEAR(one->step.bubble.value, same->step.bubble.value, 1e-6) << to_string(strategy);
      EXPECT_NEAR(one->worst().memory.total() / same->memory.total(), 1, 1e-9)
          << to_string(strategy);
    }
  }
}

}  // namespace
}  // namespace regatta::plan
