#include "regatta/planning/plan/heterogeneous_search.h"

#include <algorithm>
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/internal/search/heterogeneous_split.h"
#include "regatta/planning/plan/internal/search/server_orders.h"
#include "regatta/planning/plan/test_heterogeneous.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;

Result<HeterogeneousSearchResult> search(const topo::Cluster& cluster, const char* model,
                                         int global_batch,
                                         const workload::StrategyRequest& request = {},
                                         int top = 5) {
  return search_heterogeneous_plans({.model = workload::find_model_preset(model)->model,
                                     .global_batch = global_batch,
                                     .request = request,
                                     .cluster = cluster,
                                     .stack = *cost::find_software_stack("megatron-core")},
                                    top);
}

TEST(SearchHeterogeneousPlans, LeavesLayersOfStagesToItsOwnSplit) {
  workload::StrategyRequest request;
  request.stage_layers = {{20, 12}};
  const auto refused = search(heterogeneous_cluster({{"dgx-a100-80g", 1}, {"dgx-h100", 1}}),
                              "llama2-7b", 16, request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("stage_layers is for servers of one type"));
}

TEST(ServerOrders, KeepTypesTogetherOrSpreadThemOverStages) {
  const topo::Cluster cluster = heterogeneous_cluster({{"dgx-a100-80g", 2}, {"dgx-h100", 2}});
  const auto order = [](const std::vector<int>& numbers) {
    ServerOrder servers;
    servers.reserve(numbers.size());
    for (const int number : numbers)
      servers.push_back(ServerId{number});
    return servers;
  };
  EXPECT_EQ(type_orders(cluster),
            (std::vector<ServerOrder>{order({0, 1, 2, 3}), order({2, 3, 0, 1})}));
  EXPECT_EQ(spread_order(cluster, 2), order({0, 2, 1, 3}));
  EXPECT_TRUE(spread_order(cluster, 3).empty());
  EXPECT_TRUE(spread_order(cluster, 1).empty());
}

TEST(SearchHeterogeneousPlans, BeatsEveryEvenSplitOnMixedServers) {
  const topo::Cluster cluster = heterogeneous_cluster({{"dgx-a100-80g", 4}, {"dgx-h100", 4}});
  const auto found = search(cluster, "llama2-70b", 256);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->ranked.size(), 5U);
  const HeterogeneousPlan& best = found->ranked.front();
  const HeterogeneousInput input{.model = workload::find_model_preset("llama2-70b")->model,
                                 .strategy = best.plan.strategy,
                                 .global_batch = 256,
                                 .cluster = reordered(cluster, best.servers),
                                 .stack = *cost::find_software_stack("megatron-core")};
  const auto even = estimate_heterogeneous(input, even_split(input));
  const auto same = estimate_heterogeneous(input, best.split);
  ASSERT_TRUE(even && same);
  EXPECT_LT(best.plan.estimate.step.total(), even->step.total() * 0.9);
  EXPECT_EQ(best.plan.estimate.step.total(), same->step.total());
  for (const HeterogeneousStage& stage : same->stages)
    EXPECT_LE(stage.memory.total(), kMaxMemoryFraction * static_cast<double>(stage.capacity.value));
}

// Interleaved and other forms are not in its space.
TEST(SearchHeterogeneousPlans, AgreesWithTheSearchOfEqualServers) {
  const topo::Cluster cluster = heterogeneous_cluster({{"dgx-h100", 4}});
  workload::StrategyRequest request;
  request.cp = 1;
  request.schedule = workload::PipelineSchedule::k1F1B;
  request.overlap = true;
  const auto mixed = search(cluster, "llama2-70b", 256, request);
  const PlanningProblem problem{
      .model = workload::find_model_preset("llama2-70b")->model,
      .global_batch = 256,
      .request = request,
      .server = *topo::find_server_preset("dgx-h100"),
      .stack = *cost::find_software_stack("megatron-core"),
      .machine = {.engines = cost::gpu_engines(topo::find_server_preset("dgx-h100")->device,
                                               *cost::find_software_stack("megatron-core"),
                                               workload::Precision::kBf16),
                  .network = cost::server_network(*topo::find_server_preset("dgx-h100"),
                                                  *cost::find_software_stack("megatron-core"))},
      .devices = 32};
  const auto equal = search_estimated_plans(problem, SearchMode::kPruned, 50);
  ASSERT_TRUE(mixed && equal);
  const auto without_zero3 =
      std::find_if(equal->ranked.begin(), equal->ranked.end(),
                   [](const EstimatedPlan& plan) { return plan.strategy.zero < 3; });
  ASSERT_NE(without_zero3, equal->ranked.end());
  const Seconds step = mixed->ranked.front().plan.estimate.step.total();
  EXPECT_NEAR(step / without_zero3->estimate.step.total(), 1, 0.03);
}

TEST(SearchHeterogeneousPlans, SearchesSomeDozenServersInSeconds) {
  const topo::Cluster cluster = heterogeneous_cluster({{"dgx-a100-80g", 32}, {"dgx-h100", 32}});
  const auto start = std::chrono::steady_clock::now();
  const auto found = search(cluster, "gpt3-175b", 1536);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_LT(took.count(), 30);
}

TEST(SearchHeterogeneousPlans, SaysWhyThereIsNoPlan) {
  const topo::Cluster cluster = heterogeneous_cluster({{"dgx-a100-80g", 1}, {"dgx-h100", 1}});
  EXPECT_THAT(search(cluster, "gpt3-175b", 64).error().message,
              HasSubstr("strategies fits its 16"));
  workload::StrategyRequest request;
  request.tp = 3;
  EXPECT_THAT(search(cluster, "gpt3-175b", 64, request).error().message,
              HasSubstr("divides the job"));
  request = {};
  request.schedule = workload::PipelineSchedule::kZbH1;
  EXPECT_THAT(search(cluster, "gpt3-175b", 64, request).error().message, HasSubstr("1f1b"));
}

}  // namespace
}  // namespace regatta::plan
