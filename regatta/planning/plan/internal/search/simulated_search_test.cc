#include "regatta/planning/plan/internal/search/simulated_search.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/planning/plan/plan_metrics.h"
#include "regatta/planning/plan/stage_timeline.h"
#include "regatta/planning/plan/test_plans.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;

// Four CPU servers of two devices.
struct Case {
  workload::Job job = example_job();
  topo::Cluster cluster = example_cluster();
  cost::Rates rates = cost::described_rates(cluster);

  PlanningProblem problem() const { return planning_problem(job, cluster, rates); }
};

TEST(SearchSimulated, RanksWhatTheSearchOfSimulatedPlansRanks) {
  const Case one;
  const auto found = search_plans(one.problem(), SearchMode::kPruned, 3);
  const auto same = search_simulated_plans(one.job, one.cluster, one.rates);
  ASSERT_TRUE(found && same);
  ASSERT_EQ(found->ranked.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found->ranked[i].strategy, same->ranked[i].strategy);
    EXPECT_NEAR(found->ranked[i].estimate.step.total() / same->ranked[i].prediction.step_time, 1,
                1e-9);
  }
  EXPECT_EQ(found->evaluated, same->evaluated);
  EXPECT_EQ(found->frontier.front().strategy, found->ranked.front().strategy);
}

TEST(SearchSimulated, UsesTheServersOfTheProblemWhereTheyLie) {
  const Case one;
  const int last = static_cast<int>(one.cluster.servers.size()) - 1;
  const PlanningProblem without =
      on_servers(one.problem(), std::vector<ServerId>{ServerId{0}, ServerId{last}});
  const auto found = search_plans(without, SearchMode::kPruned, 1);
  ASSERT_TRUE(found) << found.error().message;
  for (const topo::DeviceRef device : found->ranked.front().simulated->placement)
    EXPECT_TRUE(device.server == ServerId{0} || device.server == ServerId{last});
}

TEST(SearchSimulated, PricesAStrategyAsItStands) {
  const Case one;
  const PlanningProblem problem = one.problem();
  const auto plan = exact_plan(problem, {.tp = 2, .dp = problem.devices / 2});
  ASSERT_TRUE(plan) << plan.error().message;
  const auto predicted =
      predict(one.job, one.cluster, one.rates, plan->strategy, topo::all_devices(one.cluster));
  ASSERT_TRUE(predicted);
  EXPECT_EQ(plan->simulated->prediction.step_time, predicted->step_time);
  EXPECT_THAT(exact_plan(problem, {.tp = 2}).error().message, HasSubstr("makes 2 ranks"));
  EXPECT_THAT(exact_plan(problem, {.dp = problem.devices / 2, .cp = 2}).error().message,
              HasSubstr("cp 2"));
}

TEST(SearchSimulated, DescribesItsPlansInFull) {
  const Case one;
  const PlanningProblem problem = one.problem();
  const auto plan = exact_plan(problem, {.pp = 2, .dp = problem.devices / 2});
  ASSERT_TRUE(plan) << plan.error().message;
  const PlanMetrics metrics = plan_metrics(problem, *plan);
  EXPECT_GT(metrics.mfu, 0);
  EXPECT_LT(metrics.mfu, 1);
  EXPECT_LT(metrics.sensitivities.front().step_change, 0) << "faster products";
  Seconds sum;
  for (const NamedStepPart& part : plan_parts(*plan))
    sum += part.time;
  EXPECT_NEAR(sum / plan->estimate.step.total(), 1, 1e-9);
  EXPECT_EQ(stage_memories(problem, *plan).size(), 2U);
  const auto timeline = plan_timeline(problem, *plan);
  ASSERT_TRUE(timeline) << timeline.error().message;
  ASSERT_EQ(timeline->rows.size(), 2U);
  for (const auto& row : timeline->rows) {
    int forwards = 0;
    for (const StageSpan& span : row) {
      EXPECT_LE(span.start, span.end);
      forwards += span.work == StageWork::kForward ? 1 : 0;
    }
    EXPECT_EQ(forwards, timeline->micro_batches);
  }
  double peak = 0;
  for (const MemoryCurve& curve : timeline->memory)
    peak = std::max(peak, peak_of(curve));
  EXPECT_NEAR(peak / plan->estimate.memory.total(), 1, 0.01);
}

}  // namespace
}  // namespace regatta::plan
