#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/app/report/internal/sample_run.h"
#include "regatta/app/report/pages.h"

namespace regatta::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

// Every element that opens also closes, in order; what HTML lets stand alone is skipped. Style,
// script and void elements hold no markup of ours.
std::string first_broken_tag(std::string_view html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string_view::npos) return std::string(html.substr(at, 40));
    const std::string_view tag = html.substr(at + 1, end - at - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
    if (tag.front() == '!' || tag.back() == '/' || name == "meta") continue;
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != tag) return std::string(tag);
      open.pop_back();
      continue;
    }
    open.push_back(name);
    if (name == "style" || name == "script") at = html.find("</" + name, at) - 1;
  }
  return open.empty() ? "" : open.back();
}

TEST(ReportHtml, HasEverySection) {
  const std::string html = report_html(sample_run_result());
  for (const std::string_view heading :
       {"Where a step goes", "One step, rank by rank", "How the plan was chosen", "Training",
        "Does the order hold?", "The cluster and who sits where", "Traffic per link"})
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

TEST(ReportHtml, ClosesEveryTag) {
  EXPECT_EQ(first_broken_tag(report_html(sample_run_result())), "");
}

TEST(ReportHtml, AsksForNothingFromOutside) {
  const std::string html = report_html(sample_run_result());
  for (const std::string_view outside :
       {"http", "src=", "href=", "<link", "url(", "@import", "fetch(", "<iframe", "<img"})
    EXPECT_THAT(html, Not(HasSubstr(std::string(outside))));
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
  EXPECT_EQ(first_broken_tag(html), "");
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
  EXPECT_THAT(html, Not(HasSubstr("Does the order hold?")));
  EXPECT_THAT(html, Not(HasSubstr("Speedup")));
  EXPECT_THAT(html, Not(HasSubstr("How the plan was chosen")));
  EXPECT_THAT(html, HasSubstr("Traffic was not measured"));
  EXPECT_EQ(first_broken_tag(html), "");
}

TEST(ReportHtml, SurvivesAnEmptyRun) {
  RunResult result;
  result.cluster = sample_cluster();
  EXPECT_EQ(first_broken_tag(report_html(result)), "");
}

}  // namespace
}  // namespace regatta::report
