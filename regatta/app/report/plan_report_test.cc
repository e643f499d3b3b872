#include "regatta/app/report/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/app/report/internal/sample_run.h"

namespace regatta::report {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Thousands, SeparatesGroupsOfThreeDigits) {
  EXPECT_EQ(thousands(0), "0");
  EXPECT_EQ(thousands(620), "620");
  EXPECT_EQ(thousands(5232), "5,232");
  EXPECT_EQ(thousands(-1234567), "-1,234,567");
}

TEST(ReplayText, ComparesTheMeasurementWithThePrediction) {
  ReplayedSet set{.name = "published", .runs = {}, .pairs = {}};
  set.runs.emplace_back().name = "slower";
  set.pairs.push_back({.predicted = 1.0, .measured = 1.1});
  EXPECT_THAT(replay_text({set}, true), HasSubstr("-9.1 %"));
}

ComparedCluster compared(const std::string& name, double tokens_per_s) {
  ComparedCluster one{.name = name, .devices = 16, .plan = plan::Plan{}};
  one.plan->strategy = {.tp = 8, .dp = 2};
  one.plan->estimate.step.matmul = Seconds{2};
  one.tokens_per_s = tokens_per_s;
  one.usage = {.time = Seconds{7200}, .device_hours = 32, .kilowatt_hours = 21, .cost = 64};
  return one;
}

TEST(ComparedClusters, AreRelativeToTheFirstClusterWithAPlan) {
  std::vector<ComparedCluster> clusters = {
      {.name = "tiny", .devices = 8, .plan = {}, .note = "nothing fits", .usage = {}},
      compared("a", 100),
      compared("a nics=4", 150)};
  EXPECT_EQ(reference_rate(clusters), 100);
  const std::string text = compared_clusters_text(clusters, true);
  EXPECT_THAT(text, HasSubstr("tiny            8  none: see below"));
  EXPECT_THAT(text, HasSubstr("1.50x"));
  EXPECT_THAT(text, HasSubstr("kWh (servers under load) and cost are for a billion tokens\n"
                              "tiny: nothing fits\n"));
  EXPECT_EQ(compared_clusters_json(clusters, true)["clusters"][1]["cost_per_1e9_tokens"], 64);
}

TEST(ComparedClusters, HaveNoReferenceWhereNoneHasAPlan) {
  EXPECT_EQ(reference_rate({{.name = "tiny", .plan = {}, .note = "nothing fits", .usage = {}}}), 0);
}

TEST(ComparedPlans, BeginWithTheReasonForTheDifference) {
  const plan::ComparedPlan a{.name = "A", .parts = {{"matmul", {1.0}}, {"bubble", {0.5}}}};
  const plan::ComparedPlan b{.name = "B", .parts = {{"matmul", {1.0}}, {"bubble", {1.0}}}};
  ComparedPlans plans{a, b, {.job = "x", .cluster = "small"}, {.job = "y", .cluster = "large"}};
  EXPECT_EQ(compared_plans_text(plans),
            plan::compare_plans(a, b).sentence +
                "\n\n"
                "part         A    B    B - A\n"
                "bubble  500 ms  1 s  +500 ms\n"
                "step    1.50 s  2 s  +500 ms\n"
                "memory     0 B  0 B\n"
                "note: the plans are not for the same problem: A is of job x, B of y; A is of "
                "cluster small, B of large\n");
  EXPECT_EQ(compared_plans_json(plans)["b_step_time_s"], 2.0);
  plans.b_purpose = {.job = "", .cluster = "large"};
  EXPECT_EQ(compared_plans_json(plans)["note"], "A is of cluster small, B of large");
  plans.b_purpose.cluster = "small";
  EXPECT_FALSE(compared_plans_json(plans).contains("note"));
}

TEST(ComparedPlans, ShowBothStrategiesInFullAndWhereTheyDiffer) {
  const plan::ComparedPlan a{
      .name = "A", .parts = {{"matmul", {1.0}}}, .strategy = workload::Strategy{.tp = 8, .pp = 2}};
  plan::ComparedPlan b{.name = "B",
                       .parts = {{"matmul", {1.5}}},
                       .strategy = workload::Strategy{.tp = 8, .dp = 2, .zero = 1}};
  const ComparedPlans plans{a, b, {.job = "x", .cluster = "c"}, {.job = "x", .cluster = "c"}};
  EXPECT_THAT(compared_plans_text(plans),
              HasSubstr("\nA: tp8 pp2 dp1 mb1 recompute=none 1f1b zero0\n"
                        "B: tp8 pp1 dp2 mb1 recompute=none zero1 1f1b\n"
                        "they differ in dp 1 and 2, pp 2 and 1, zero 0 and 1\n\n"));
  b.fits = false;
  EXPECT_THAT(compared_plans_text(plans), HasSubstr("\nnote: B does not fit its devices\n"));
  EXPECT_EQ(compared_plans_json(plans)["b_fits"], false);
  EXPECT_EQ(compared_plans_json(plans)["a_strategy"]["pp"], 2);
  EXPECT_EQ(compared_plans_json(plans)["b_strategy"]["zero"], 1);
}

TEST(SimulatedSearch, CountsPlansStrategiesAndWhatWasRuledOut) {
  plan::SimulatedSearchResult result;
  result.evaluated = 12;
  result.rejected = {{.kind = plan::RejectionReason::kSlower},
                     {.kind = plan::RejectionReason::kMemory}};
  const RunResult run = sample_run_result();
  const ChosenPlanReport chosen{.job = run.job,
                                .cluster = run.cluster,
                                .rates_source = "described",
                                .result = result,
                                .ports_method = "hashed",
                                .ports_reason = "asked for"};
  EXPECT_THAT(chosen_plan_text(chosen),
              StartsWith("job " + run.job.name + " on cluster " + run.cluster.name +
                         ": 12 plans of 2 strategies evaluated, 1 strategy ruled out; rates: "
                         "described\n\n"));
}

TEST(PlanSearch, ShowsTheRankingTheReasonsAndTheBestSimulatedPlan) {
  const RunResult run = sample_run_result();
  topo::Cluster cluster = run.cluster;
  for (auto& [name, type] : cluster.server_types) {
    type.device.fp32_peak = FlopsPerSecond{1e11};
    type.device.memory_bandwidth = BytesPerSecond{1e10};
    type.device.memory = Bytes{1LL << 31};
    type.intra = {topo::IntraKind::kShm, BytesPerSecond{1e9}, Seconds{1e-5}};
    type.nic_count = 1;
    type.nic_rate = BytesPerSecond{1e8};
  }
  const cost::Rates rates = cost::described_rates(cluster);
  const plan::PlanningProblem problem = plan::planning_problem(run.job, cluster, rates);
  const auto found = plan::search_plans(problem, plan::SearchMode::kPruned, 2);
  ASSERT_TRUE(found) << found.error().message;
  const plan::Plan& best = found->ranked.front();
  const PlanSearchReport search{.best = {run.job, cluster, problem, best, {}, {"noisy"}},
                                .result = *found,
                                .search_time = Seconds{0.25},
                                .has_frontier = true,
                                .top = 2};
  const std::string text = plan_search_text(search);
  EXPECT_THAT(text, StartsWith("job " + run.job.name + " on cluster " + run.cluster.name + ": "));
  EXPECT_THAT(text, HasSubstr(", in 250 ms; rates: described\n"));
  EXPECT_THAT(text, HasSubstr("\nplacement A: " + best.simulated->placement_name + "\n"));
  EXPECT_THAT(text, HasSubstr("ruled out because"));
  EXPECT_THAT(text, HasSubstr("plans that no other beats in both time and memory"));
  EXPECT_THAT(text, HasSubstr("\nplan: " + to_string(best.strategy) + "\n"));
  const nlohmann::json all = plan_search_json(search);
  EXPECT_EQ(all["search"]["ranked"].size(), 2U);
  EXPECT_EQ(all["ranked"].size(), 2U);
  EXPECT_EQ(all["warnings"][0], "noisy");
  EXPECT_NEAR(all["step_time_s"].get<double>(), all["predicted"]["step_time_s"].get<double>(),
              1e-9);
  EXPECT_EQ(all["breakdown"]["bubble_s"], all["predicted"]["phases"]["bubble_s"]);
}

TEST(ChosenPlanText, ListsTheChosenPlanAndTheFourNextAndThePorts) {
  const RunResult run = sample_run_result();
  const std::string text = chosen_plan_text({.job = run.job,
                                             .cluster = run.cluster,
                                             .rates_source = "described",
                                             .result = run.search,
                                             .ports_method = "hashed",
                                             .ports_reason = "asked for"});
  EXPECT_THAT(text, HasSubstr("\nchosen  "));
  EXPECT_THAT(text, HasSubstr("\nnext 4  "));
  EXPECT_THAT(text, Not(HasSubstr("next 5")));
  EXPECT_THAT(text, EndsWith("\n\nports hashed: asked for\n"));
}

}  // namespace
}  // namespace regatta::report
