#include <algorithm>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/internal/search/server_count.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Owns what a PlanningProblem refers to.
struct Case {
  workload::ModelShape model = workload::find_model_preset("megatron-39.1b")->model;
  workload::StrategyRequest request;
  topo::ServerType server = *topo::find_server_preset("dgx-a100-80g");
  const cost::SoftwareStack* stack = cost::find_software_stack("megatron-core");
  int servers = 16;

  PlanningProblem problem() const {
    const workload::Strategy none;
    return {.model = model,
            .global_batch = 512,
            .precision = workload::Precision::kBf16,
            .request = request,
            .server = server,
            .stack = *stack,
            .machine = machine_model(
                {.model = model, .strategy = none, .server = server, .stack = *stack}),
            .devices = servers * server.device_count};
  }
};

// With times and device hours alone.
ClusterSizes sizes_of(const std::vector<std::pair<double, double>>& usages) {
  ClusterSizes all;
  for (const auto& [time, hours] : usages) {
    ClusterSize size;
    size.devices = 8 * (1 + static_cast<int>(all.sizes.size()));
    size.plan.estimate.memory.weights = 100 - size.devices;
    size.usage = {.time = {time}, .device_hours = hours};
    all.sizes.push_back(size);
  }
  return all;
}

TEST(ServerCounts, AreAllOfAFewAndPowersOfTwoWithTheirMiddlesOfMany) {
  EXPECT_THAT(server_counts(1), ElementsAre(1));
  EXPECT_THAT(server_counts(5), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(server_counts(20), ElementsAre(1, 2, 3, 4, 6, 8, 12, 16, 20));
  EXPECT_THAT(server_counts(128).back(), 128);
  EXPECT_LT(server_counts(32768).size(), 40U);
}

TEST(PlanClusterSizes, HaveTheFastestPlanOfEachNumberOfServers) {
  const Case one;
  const PlanningProblem problem = one.problem();
  const auto sizes = plan_cluster_sizes(problem, {.steps = 1000, .price = 2});
  ASSERT_TRUE(sizes) << sizes.error().message;
  ASSERT_GT(sizes->sizes.size(), 3U);
  EXPECT_EQ(sizes->tokens, 1000.0 * 512 * one.model.seq);
  for (const ClusterSize& size : sizes->sizes) {
    SCOPED_TRACE(size.devices);
    PlanningProblem sized = problem;
    sized.devices = size.devices;
    const auto best = search_plans(sized, SearchMode::kPruned, 1);
    ASSERT_TRUE(best);
    EXPECT_EQ(size.plan.strategy, best->ranked.front().strategy);
    const double step = size.plan.estimate.step.total().value;
    EXPECT_NEAR(size.usage.time.value, 1000 * step, 1e-6 * step);
    EXPECT_NEAR(size.usage.device_hours, 1000 * step * size.devices / 3600, 1e-6);
    EXPECT_EQ(size.usage.cost, 2 * size.usage.device_hours);
    EXPECT_NEAR(size.efficiency / sizes->sizes.front().efficiency,
                size.mfu / sizes->sizes.front().mfu, 1e-9);
  }
  EXPECT_EQ(sizes->sizes.front().efficiency, 1);
  EXPECT_EQ(sizes->sizes.back().servers, 16);
}

TEST(PlanClusterSizes, LeaveOutWhereNothingFitsOrDivides) {
  Case one;
  const auto sizes = plan_cluster_sizes(one.problem(), {});
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->tokens, 1e9);
  ASSERT_FALSE(sizes->left_out.empty());
  EXPECT_EQ(sizes->left_out.front().servers, 1);
  EXPECT_THAT(sizes->left_out.front().reason, HasSubstr("no strategy fits"));
  EXPECT_GE(sizes->sizes.size() + sizes->left_out.size(), server_counts(16).size());
  // Four stages of eight ranks need multiples of 32 devices.
  one.request.tp = 8;
  one.request.pp = 4;
  const auto staged = plan_cluster_sizes(one.problem(), {});
  ASSERT_TRUE(staged);
  EXPECT_EQ(staged->sizes.front().devices, 32);
  for (const ClusterSize& size : staged->sizes)
    EXPECT_EQ(size.devices % 32, 0);
}

TEST(PlanClusterSizes, FindANumberOfServersBetweenThoseThatTheyLookAt) {
  Case one;
  one.servers = 13;
  one.request = {.tp = 8, .cp = 1};
  const PlanningProblem problem = one.problem();
  const auto best = fastest_server_count(problem, 1, 13);
  ASSERT_TRUE(best);
  for (int servers = 1; servers <= 13; ++servers) {
    PlanningProblem sized = problem;
    sized.devices = servers * 8;
    const auto plan = fastest_plan(sized);
    if (!plan) continue;
    EXPECT_GE(plan->estimate.step.total(), best->plan.estimate.step.total()) << servers;
  }
  const auto sizes = plan_cluster_sizes(problem, {});
  ASSERT_TRUE(sizes);
  EXPECT_TRUE(std::any_of(sizes->sizes.begin(), sizes->sizes.end(),
                          [&](const ClusterSize& size) { return size.servers == best->servers; }));
  for (std::size_t i = 1; i < sizes->sizes.size(); ++i)
    EXPECT_GT(sizes->sizes[i].servers, sizes->sizes[i - 1].servers);
}

TEST(FastestServerCount, IsNothingWhereNoPlanFits) {
  Case one;
  EXPECT_FALSE(fastest_server_count(one.problem(), 1, 1));
}

TEST(CountsToTry, AreAllOfAFewAndTheMostDivisibleOfMany) {
  EXPECT_THAT(counts_to_try(3, 6, 8, 1536), ElementsAre(6, 5, 4, 3));
  const std::vector<int> many = counts_to_try(500, 1000, 8, 1536);
  EXPECT_EQ(many.size(), 32U);
  EXPECT_EQ(many.front(), 1000);
  EXPECT_THAT(many, testing::IsSupersetOf({960, 768}));
  EXPECT_TRUE(std::is_sorted(many.rbegin(), many.rend()));
}

TEST(PlanClusterSizes, FailWhereNoSizeHasAPlan) {
  Case one;
  one.servers = 1;
  const auto sizes = plan_cluster_sizes(one.problem(), {});
  ASSERT_FALSE(sizes);
  EXPECT_THAT(sizes.error().message, HasSubstr("no strategy fits"));
  // Nor does a strategy whose degrees are all given.
  one.request = {.tp = 8, .pp = 1, .dp = 1, .cp = 1, .micro_batch = 1};
  const auto fixed = plan_cluster_sizes(one.problem(), {});
  ASSERT_FALSE(fixed);
  EXPECT_THAT(fixed.error().message, HasSubstr("no strategy with cp 1, dp 1"));
}

TEST(PlanClusterSizes, AreOptimalWhereNoOtherIsFasterAndCheaper) {
  Case one;
  const auto sizes = plan_cluster_sizes(one.problem(), {});
  ASSERT_TRUE(sizes);
  int optimal = 0;
  for (const ClusterSize& size : sizes->sizes) {
    bool is_beaten = false;
    for (const ClusterSize& other : sizes->sizes)
      is_beaten |=
          other.usage.time < size.usage.time && other.usage.device_hours < size.usage.device_hours;
    EXPECT_FALSE(is_beaten && size.is_optimal);
    optimal += size.is_optimal ? 1 : 0;
  }
  EXPECT_GT(optimal, 0);
  EXPECT_TRUE(sizes->sizes[*select_size(*sizes, Objective::kTime)].is_optimal);
  EXPECT_TRUE(sizes->sizes[*select_size(*sizes, Objective::kCost)].is_optimal);
}

TEST(SelectSize, FollowsTheObjective) {
  const ClusterSizes sizes = sizes_of({{100, 7}, {60, 5}, {40, 6}, {40, 8}});
  EXPECT_EQ(*select_size(sizes, Objective::kTime), 2U);
  EXPECT_EQ(*select_size(sizes, Objective::kCost), 1U);
  EXPECT_EQ(*select_size(sizes, Objective::kDevices), 0U);
  EXPECT_EQ(*select_size(sizes, Objective::kMemory), 3U);
}

TEST(SelectSize, LooksAmongThoseThatEndInTime) {
  const ClusterSizes sizes = sizes_of({{100, 4}, {60, 5}, {40, 6}});
  EXPECT_EQ(*select_size(sizes, Objective::kCost), 0U);
  EXPECT_EQ(*select_size(sizes, Objective::kCost, Seconds{60}), 1U);
  EXPECT_EQ(*select_size(sizes, Objective::kCost, Seconds{59}), 2U);
  const auto none = select_size(sizes, Objective::kCost, Seconds{39});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInvalidInput);
  EXPECT_THAT(none.error().message, HasSubstr("the fastest, 24 devices, takes 40 s"));
}

TEST(Objective, HasAName) {
  EXPECT_THAT(objective_names(), ElementsAre("time", "cost", "devices", "memory"));
  EXPECT_EQ(objective_named("cost"), Objective::kCost);
  EXPECT_FALSE(objective_named("speed"));
  EXPECT_EQ(to_string(Objective::kDevices), "devices");
}

}  // namespace
}  // namespace regatta::plan
