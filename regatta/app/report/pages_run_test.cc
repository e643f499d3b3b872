#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/app/report/internal/page_fault.h"
#include "regatta/app/report/internal/sample_run.h"
#include "regatta/app/report/pages.h"

namespace regatta::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReportHtml, HasEverySection) {
  const std::string html = report_html(sample_run_result());
  for (const std::string_view heading :
       {"Where a step goes", "One step, rank by rank", "How the plan was chosen", "Training",
        "Predicted and measured order", "The cluster and its ranks", "Traffic per link"})
    EXPECT_THAT(html, HasSubstr("<h2>" + std::string(heading) + "</h2>"));
  EXPECT_THAT(html, HasSubstr("<title>gpt-small on lab-2x2x2 - regatta</title>"));
}

TEST(ReportHtml, CountsStepsFromOneAsTheProgressDoes) {
  const RunResult run = sample_run_result();
  const std::string html = report_html(run);
  const auto& steps = run.main.measured.steps;
  EXPECT_THAT(html, HasSubstr(" at step 1, "));
  EXPECT_THAT(html, HasSubstr(" at step " + std::to_string(steps.size()) + ". "));
}

TEST(ReportHtml, IsASoundPage) {
  EXPECT_EQ(page_fault(report_html(sample_run_result())), "");
}

TEST(ReportHtml, ComparesTheMeasurementWithThePrediction) {
  RunResult run = sample_run_result();
  run.main.plan.prediction.step_time = {1.0};
  run.main.measured.step_time = {1.1};
  EXPECT_THAT(report_html(run), HasSubstr("<div class=\"value \">+10.0 %</div><div class=\"note\">"
                                          "slower than predicted, within the stated 15 %"));
  run.main.measured.step_time = {1.3};
  EXPECT_THAT(report_html(run), HasSubstr("<div class=\"value bad\">+30.0 %</div>"));
  run.main.measured.step_time = {0.8};
  EXPECT_THAT(report_html(run), HasSubstr("<div class=\"value \">-20.0 %</div><div class=\"note\">"
                                          "faster than predicted, beyond the stated 15 %"));
}

TEST(ReportHtml, DrawsAStepAfterTheWarmUp) {
  RunResult run = sample_run_result();
  const int first = run.main.measured.timeline.front().step;
  run.main.measured.warm_up_steps = first + 1;
  EXPECT_THAT(report_html(run), Not(HasSubstr("(step " + std::to_string(first + 1) + ",")));
}

TEST(ReportHtml, EscapesEveryTextOfTheRun) {
  RunResult result = sample_run_result();
  const std::string evil = "<script>alert('x')</script>\"&";
  result.job.name = evil;
  result.cluster.name = evil;
  result.cluster.servers[0].name = evil;
  result.machine = evil;
  result.rates_source = evil;
  result.speed_note = evil;
  result.started_at = evil;
  result.search.rejected[0].reason = evil;
  result.search.rejected[0].placement_name = evil;
  result.main.plan.placement_name = evil;
  result.compare->plan.placement_name = evil;
  for (plan::SimulatedPlan& plan : result.search.ranked)
    plan.placement_name = evil;
  for (PlanRun& run : result.sweep)
    run.plan.placement_name = evil;
  const std::string html = report_html(result);
  EXPECT_THAT(html, Not(HasSubstr("alert('x')")));
  EXPECT_EQ(count(html, "<script>"), 1U);
  EXPECT_EQ(page_fault(html), "");
}

TEST(ReportHtml, IsTheSameBytesForTheSameRun) {
  EXPECT_EQ(report_html(sample_run_result()), report_html(sample_run_result()));
}

TEST(ReportHtml, DrawsEveryRankPredictedAndMeasured) {
  RunResult result = sample_run_result();
  const std::string html = report_html(result);
  EXPECT_EQ(count(html, "<div class=\"lane\""), 8U);
  // One step of the three that were traced.
  std::size_t drawn = result.main.plan.prediction.timeline.size();
  for (const workload::Span& span : result.main.measured.timeline)
    if (span.step == result.main.measured.timeline.front().step) ++drawn;
  EXPECT_EQ(count(html, "<title>rank "), drawn);
}

TEST(ReportHtml, ShowsTheTenBestAndWhatRuledOthersOut) {
  RunResult result = sample_run_result();
  while (result.search.ranked.size() < 14)
    result.search.ranked.push_back(result.search.ranked.back());
  const std::string html = report_html(result);
  EXPECT_EQ(count(html, "class=\"stack small\""), 10U);
  EXPECT_EQ(count(html, "<tr class=\"chosen\">"), 1U);
  EXPECT_THAT(html, HasSubstr("3.2x slower: tp_comm takes 64 % of the step"));
}

TEST(ReportHtml, LeavesOutWhatTheRunDidNotDo) {
  RunResult result = sample_run_result();
  result.compare.reset();
  result.sweep.clear();
  result.main.measured.traffic.clear();
  result.main.measured.timeline.clear();
  result.main.measured.steps.clear();
  result.search = {};
  const std::string html = report_html(result);
  EXPECT_THAT(html, Not(HasSubstr("Predicted and measured order")));
  EXPECT_THAT(html, Not(HasSubstr("Speedup")));
  EXPECT_THAT(html, Not(HasSubstr("How the plan was chosen")));
  EXPECT_THAT(html, HasSubstr("Traffic was not measured"));
  EXPECT_EQ(page_fault(html), "");
}

TEST(ReportHtml, SurvivesAnEmptyRun) {
  RunResult result;
  result.cluster = sample_cluster();
  EXPECT_EQ(page_fault(report_html(result)), "");
}

}  // namespace
}  // namespace regatta::report
