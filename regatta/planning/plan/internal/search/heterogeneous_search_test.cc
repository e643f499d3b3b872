#include "regatta/planning/plan/internal/search/heterogeneous_search.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/internal/search/heterogeneous_split.h"
#include "regatta/planning/plan/internal/search/server_orders.h"
#include "regatta/planning/plan/plan_metrics.h"
#include "regatta/planning/plan/stage_timeline.h"
#include "regatta/planning/plan/test_heterogeneous.h"

namespace regatta::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Owns what a problem refers to.
struct Case {
  workload::Job job;
  topo::Cluster cluster;
  const cost::SoftwareStack& stack = *cost::find_software_stack("megatron-core");

  PlanningProblem problem() const {
    auto problem = planning_problem(job, cluster, stack);
    EXPECT_TRUE(problem) << problem.error().message;
    return *std::move(problem);
  }
  Result<PlanSearchResult> search(SearchMode mode = SearchMode::kPruned, int top = 5) const {
    return search_plans(problem(), mode, top);
  }
};

Case case_of(const std::vector<ServerCount>& servers, const char* model, int global_batch,
             const workload::StrategyRequest& request = {}) {
  Case one;
  one.job.name = "j";
  one.job.model = workload::find_model_preset(model)->model;
  one.job.global_batch = global_batch;
  one.job.precision = workload::Precision::kBf16;
  one.job.strategy = request;
  one.cluster = heterogeneous_cluster(servers);
  one.cluster.fabric = {.tiers = 1};
  return one;
}

TEST(SearchHeterogeneousServers, KeepsTheLayersThatStagesAreGiven) {
  workload::StrategyRequest request;
  request.stage_layers = {{12, 20}};
  const Case one = case_of({{"dgx-a100-80g", 1}, {"dgx-h100", 1}}, "llama2-7b", 16, request);
  const auto found = one.search();
  ASSERT_TRUE(found) << found.error().message;
  for (const Plan& plan : found->ranked)
    EXPECT_EQ(plan.strategy.stage_layers, (std::vector<int>{12, 20}));
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

TEST(SearchHeterogeneousServers, BeatsEveryEvenSplit) {
  const Case one = case_of({{"dgx-a100-80g", 4}, {"dgx-h100", 4}}, "llama2-70b", 256);
  const auto found = one.search();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->ranked.size(), 5U);
  const Plan& best = found->ranked.front();
  const HeterogeneousInput input{.model = one.job.model,
                                 .strategy = best.strategy,
                                 .global_batch = 256,
                                 .cluster = reordered(one.cluster, best.servers),
                                 .stack = one.stack};
  workload::Strategy plain = best.strategy;
  plain.stage_layers.clear();
  const HeterogeneousInput even_input{.model = one.job.model,
                                      .strategy = plain,
                                      .global_batch = 256,
                                      .cluster = input.cluster,
                                      .stack = one.stack};
  const auto even = estimate_heterogeneous(even_input, even_split(even_input));
  const HeterogeneousSplit split{.layers = even_split(input).layers,
                                 .micro_batches = best.micro_batches};
  const auto same = estimate_heterogeneous(input, split);
  ASSERT_TRUE(even && same);
  EXPECT_LT(best.estimate.step.total(), even->step.total() * 0.9);
  EXPECT_EQ(best.estimate.step.total(), same->step.total());
  for (const HeterogeneousStage& stage : same->stages)
    EXPECT_LE(stage.memory.total(), kUsableMemory * static_cast<double>(stage.capacity.value));
}

// Two types that differ in nothing but their names are one.
TEST(SearchHeterogeneousServers, GivesEqualServersTheNumbersOfEqualServers) {
  Case twins = case_of({{"dgx-h100", 4}}, "llama2-70b", 256);
  const Case one = twins;
  twins.cluster.server_types["copy"] = twins.cluster.server_types.at("dgx-h100");
  twins.cluster.server_types["copy"].name = "copy";
  for (const std::size_t server : {1U, 2U})
    twins.cluster.servers[server].type = "copy";
  const auto equal = one.search();
  const auto mixed = twins.search();
  ASSERT_TRUE(equal && mixed);
  ASSERT_EQ(equal->ranked.size(), mixed->ranked.size());
  for (std::size_t i = 0; i < equal->ranked.size(); ++i) {
    EXPECT_EQ(equal->ranked[i].strategy, mixed->ranked[i].strategy);
    EXPECT_EQ(equal->ranked[i].estimate.step.total(), mixed->ranked[i].estimate.step.total());
  }
}

// All forms of 1F1B, one by one: those whose stages are of whole servers and equal layers.
TEST(SearchHeterogeneousServers, AgreesWithTheEstimateOfEqualServersForEveryForm) {
  const Case one = case_of({{"dgx-h100", 8}}, "qwen3-30b-a3b", 256);
  PlanningProblem mixed = one.problem();
  const PlanningProblem equal = mixed;
  mixed.cluster = &one.cluster;
  std::vector<ServerId> servers;
  for (int i = 0; i < 8; ++i)
    servers.push_back(ServerId{i});
  const PlanningProblem unlike = on_servers(mixed, servers);
  const workload::Strategy strategies[] = {
      {.tp = 2, .pp = 4, .dp = 8, .sequence_parallel = true, .ep = 8, .zero = 1},
      {.tp = 1, .pp = 2, .dp = 32, .ep = 16},
      {.tp = 2,
       .pp = 1,
       .dp = 16,
       .sequence_parallel = true,
       .cp = 2,
       .ep = 16,
       .etp = 1,
       .zero = 1},
      {.tp = 4, .pp = 2, .dp = 8, .sequence_parallel = true, .ep = 8, .zero = 3},
      {.tp = 8, .pp = 2, .dp = 4, .sequence_parallel = true, .ep = 4, .zero = 2}};
  for (const workload::Strategy& strategy : strategies) {
    const auto a = exact_plan(equal, strategy);
    const auto b = plan_in_rank_order(unlike, strategy, {});
    ASSERT_TRUE(a && b) << to_string(strategy) << (a ? "" : a.error().message)
                        << (b ? "" : b.error().message);
    EXPECT_NEAR(b->estimate.step.total() / a->estimate.step.total(), 1, 0.01)
        << to_string(strategy);
    EXPECT_NEAR(b->estimate.step.ep_comm / a->estimate.step.ep_comm, 1, 1e-9);
    EXPECT_NEAR(b->estimate.memory.total() / a->estimate.memory.total(), 1, 1e-9)
        << to_string(strategy);
  }
}

TEST(SearchHeterogeneousServers, AgreesWithTheSearchOfEqualServers) {
  workload::StrategyRequest request;
  request.schedule = workload::PipelineSchedule::k1F1B;
  request.overlap = true;
  const Case one = case_of({{"dgx-h100", 4}}, "llama2-70b", 256, request);
  PlanningProblem mixed = one.problem();
  const auto equal = search_plans(mixed, SearchMode::kPruned, 1);
  mixed.cluster = &one.cluster;
  const std::vector<ServerId> servers{ServerId{0}, ServerId{1}, ServerId{2}, ServerId{3}};
  const auto unlike = search_plans(on_servers(mixed, servers), SearchMode::kPruned, 1);
  ASSERT_TRUE(equal && unlike);
  const Seconds step = unlike->ranked.front().estimate.step.total();
  EXPECT_NEAR(step / equal->ranked.front().estimate.step.total(), 1, 0.03);
}

TEST(SearchHeterogeneousServers, PrunesNothingThatAnExhaustiveSearchRanks) {
  for (const char* model : {"llama2-7b", "qwen3-30b-a3b", "gpt-oss-20b"}) {
    const Case one = case_of({{"dgx-a100-80g", 1}, {"dgx-h100", 1}}, model, 32);
    const auto pruned = one.search(SearchMode::kPruned, 3);
    const auto all = one.search(SearchMode::kExhaustive, 3);
    ASSERT_TRUE(pruned && all) << (pruned ? "" : pruned.error().message);
    EXPECT_LE(pruned->evaluated, all->evaluated);
    EXPECT_FALSE(all->frontier.empty());
    ASSERT_EQ(pruned->ranked.size(), all->ranked.size());
    for (std::size_t i = 0; i < all->ranked.size(); ++i)
      EXPECT_NEAR(pruned->ranked[i].estimate.step.total() / all->ranked[i].estimate.step.total(), 1,
                  1e-3)
          << model;
  }
}

TEST(SearchHeterogeneousServers, FindsTheSamePlanHoweverManyAreAskedFor) {
  for (const char* model : {"llama2-13b", "gpt-oss-20b"}) {
    const Case one = case_of({{"dgx-a100-80g", 2}, {"dgx-h100", 2}}, model, 64);
    const auto ten = one.search(SearchMode::kPruned, 10);
    ASSERT_TRUE(ten) << ten.error().message;
    for (const int top : {1, 3}) {
      const auto some = one.search(SearchMode::kPruned, top);
      ASSERT_TRUE(some);
      EXPECT_EQ(some->ranked.front().strategy, ten->ranked.front().strategy) << model;
    }
  }
}

TEST(SearchHeterogeneousServers, FindsTheSameOnAnyNumberOfThreads) {
  const Case one = case_of({{"dgx-a100-80g", 2}, {"dgx-h100", 2}}, "llama2-7b", 64);
  const auto alone = search_plans(one.problem(), SearchMode::kPruned, 5, 1);
  const auto shared = search_plans(one.problem(), SearchMode::kPruned, 5, 3);
  ASSERT_TRUE(alone && shared);
  ASSERT_EQ(alone->ranked.size(), shared->ranked.size());
  for (std::size_t i = 0; i < alone->ranked.size(); ++i) {
    EXPECT_EQ(alone->ranked[i].strategy, shared->ranked[i].strategy);
    EXPECT_EQ(alone->ranked[i].servers, shared->ranked[i].servers);
  }
}

TEST(SearchHeterogeneousServers, GivesReplicasTheSameForALauncher) {
  const Case one = case_of({{"dgx-a100-80g", 2}, {"dgx-h100", 2}}, "llama2-7b", 64);
  PlanningProblem problem = one.problem();
  problem.even_replicas = true;
  const auto found = search_plans(problem, SearchMode::kPruned, 5);
  ASSERT_TRUE(found) << found.error().message;
  for (const Plan& plan : found->ranked) {
    const auto [least, most] =
        std::minmax_element(plan.micro_batches.begin(), plan.micro_batches.end());
    EXPECT_EQ(*least, *most) << to_string(plan.strategy);
  }
}

TEST(SearchHeterogeneousServers, UsesTheFirstServersWhereFewerAreAskedFor) {
  const Case one = case_of({{"dgx-a100-80g", 2}, {"dgx-h100", 2}}, "llama2-7b", 64);
  const PlanningProblem three = on_servers(one.problem(), 3);
  EXPECT_EQ(three.devices, 24);
  const auto found = search_plans(three, SearchMode::kPruned, 1);
  ASSERT_TRUE(found) << found.error().message;
  for (const ServerId server : found->ranked.front().servers)
    EXPECT_LT(server, ServerId{3});
}

TEST(SearchHeterogeneousServers, LeavesOutMostOfWhatIsSlowerOnSomeDozenServers) {
  const Case one = case_of({{"dgx-a100-80g", 12}, {"dgx-h100", 12}}, "gpt3-175b", 768);
  const auto found = one.search();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GT(found->fitting, 0);
  EXPECT_LT(found->evaluated, 100'000);
}

TEST(SearchHeterogeneousServers, SaysWhyThereIsNoPlan) {
  const std::vector<ServerCount> servers{{"dgx-a100-80g", 1}, {"dgx-h100", 1}};
  EXPECT_THAT(case_of(servers, "gpt3-175b", 64).search().error().message,
              AllOf(HasSubstr("no strategy fits 80 GiB of a100-sxm4-80g and h100-sxm"),
                    HasSubstr("use more servers")));
  workload::StrategyRequest request;
  request.tp = 3;
  EXPECT_THAT(case_of(servers, "gpt3-175b", 64, request).search().error().message,
              HasSubstr("tp 3 x cp 1 x pp 1 x dp 1 cannot fill 16"));
  request = {};
  request.schedule = workload::PipelineSchedule::kZbH1;
  EXPECT_THAT(case_of(servers, "llama2-7b", 64, request).search().error().message,
              HasSubstr("1f1b"));
}

// Every flag of a plan has an answer: the stages, the step with faster links, the timeline.
TEST(SearchHeterogeneousServers, DescribesItsPlansInFull) {
  workload::StrategyRequest request;
  request.pp = 2;
  const Case one = case_of({{"dgx-a100-80g", 1}, {"dgx-h100", 1}}, "llama2-13b", 64, request);
  const PlanningProblem problem = one.problem();
  const auto found = search_plans(problem, SearchMode::kPruned, 1);
  ASSERT_TRUE(found) << found.error().message;
  const Plan& plan = found->ranked.front();
  const PlanMetrics metrics = plan_metrics(problem, plan);
  EXPECT_LT(metrics.sensitivities.front().step_change, 0);
  EXPECT_EQ(stage_memories(problem, plan).size(), 2U);
  const auto timeline = plan_timeline(problem, plan);
  ASSERT_TRUE(timeline) << timeline.error().message;
  EXPECT_NEAR(timeline->makespan / plan.estimate.step.total(), 1, 0.02);
  double peak = 0;
  for (const MemoryCurve& curve : timeline->memory)
    peak = std::max(peak, peak_of(curve));
  EXPECT_NEAR(peak / plan.estimate.memory.total(), 1, 0.01);
}

}  // namespace
}  // namespace regatta::plan
