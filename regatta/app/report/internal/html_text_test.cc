#include "regatta/app/report/internal/html_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/app/report/internal/page_fault.h"
#include "regatta/app/report/internal/svg.h"

namespace regatta::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EscapeHtml, LeavesNothingThatEndsTextOrAnAttribute) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(escape_html("s0/1"), "s0/1");
}

TEST(TimeFormat, ChoosesOneUnitForAllTimes) {
  EXPECT_EQ(TimeFormat({0.4125})({0.4125}), "412.5 ms");
  EXPECT_EQ(TimeFormat({0.4125})({1.5}), "1500.0 ms");
  EXPECT_EQ(TimeFormat({2})({0.25}), "0.250 s");
  EXPECT_EQ(TimeFormat({40})({0.25}), "0.25 s");
  EXPECT_EQ(TimeFormat({20e-6})({7e-6}), "7.0 us");
  EXPECT_EQ(TimeFormat({2})({1e-5}), "< 0.001 s");
}

TEST(TimeFormat, WritesNoSignOnADifferenceThatRoundsToNothing) {
  EXPECT_EQ(TimeFormat({2}).difference({-1e-5}), "0.000 s");
  EXPECT_EQ(TimeFormat({2}).difference({0.012}), "+0.012 s");
  EXPECT_EQ(TimeFormat({2}).difference({-0.5}), "-0.500 s");
}

TEST(ColumnFormat, ChoosesOneUnitForAllValues) {
  const ColumnFormat bytes = ColumnFormat::bytes(3.5 * 1024 * 1024);
  EXPECT_EQ(bytes(Bytes{3670016}), "3.50 MiB");
  EXPECT_EQ(bytes(Bytes{1024}), "< 0.01 MiB");
  EXPECT_EQ(bytes(Bytes{0}), "0.00 MiB");
  EXPECT_EQ(ColumnFormat::bits_per_second({12.5e9})(BytesPerSecond{1.25e9}), "10 Gbps");
  EXPECT_EQ(ColumnFormat::bytes_per_second({12.5e9})(BytesPerSecond{1.25e9}), "1.2 GB/s");
  EXPECT_EQ(ColumnFormat::bytes(0)(0.0), "0 B");
}

TEST(RowsAboveOnePercent, FoldsWhatIsTogetherBelowIt) {
  EXPECT_EQ(rows_above_one_percent({500, 490, 4, 3, 2}), 2U);
  EXPECT_EQ(rows_above_one_percent({500, 490, 5}), 3U);  // a row for one row saves nothing
  EXPECT_EQ(rows_above_one_percent({1, 1, 1}), 3U);
  EXPECT_EQ(rows_above_one_percent({}), 0U);
}

TEST(Chart, KeepsTextOutOfTheDrawingThatStretches) {
  Chart chart({.title = "a < b", .x_label = "s", .x_most = 9, .y_most = 4});
  chart.line({{0, 0}, {10, 4}}, "main");
  chart.dot({10, 4}, "dot", "t<", "7");
  chart.mark({{.from = 5, .to = 1e9, .number = "1"}, {.from = 11, .to = 12, .number = "2"}});
  const std::string html = chart.html();
  EXPECT_THAT(html, HasSubstr("a &lt; b"));
  EXPECT_THAT(html, HasSubstr("d=\"M0 1000L1000 0\""));
  EXPECT_THAT(html, HasSubstr("left:100.00%;top:0.00%"));
  EXPECT_THAT(html, HasSubstr("left:50.00%;width:50.00%\"><b>1</b>"));
  EXPECT_THAT(html, testing::Not(HasSubstr("<b>2</b>")));  // beyond the chart
  EXPECT_THAT(html, testing::Not(HasSubstr("<text")));
}

TEST(PageFault, FindsWhatIsWrongWithAPage) {
  const auto fault = [](const std::string& body) {
    return page_fault(
        html_page({.kind = "k", .title = "t", .place = "p", .facts = {}, .origin = {}}, body));
  };
  const std::string svg = svg_open("a", 10, 20, "label");
  EXPECT_EQ(fault(svg + svg_rect("", {0, 0, 10, 20}) + "</svg>"), "");
  EXPECT_NE(fault("<p>"), "");
  EXPECT_NE(fault("<img>"), "");
  EXPECT_NE(fault("<svg></svg>"), "");
  EXPECT_NE(fault(svg + svg_rect("", {1, 0, 10, 20}) + "</svg>"), "");     // sticks out
  EXPECT_NE(fault(svg + svg_text("", {0, 2}, "cut off") + "</svg>"), "");  // at the top
}

TEST(SignedPercent, AlwaysShowsTheDirection) {
  EXPECT_EQ(signed_percent(0.0344), "+3.4 %");
  EXPECT_EQ(signed_percent(-0.2), "-20.0 %");
  EXPECT_EQ(signed_percent(-0.00001), "0.0 %");
}

TEST(NiceTicks, StepByOneTwoOrFive) {
  EXPECT_THAT(nice_ticks(9, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(nice_ticks(50, 6), ElementsAre(0, 10, 20, 30, 40, 50));
  EXPECT_THAT(nice_ticks(0, 6), ElementsAre(0, 1));
  EXPECT_THAT(nice_ticks(0.35, 1), ElementsAre(0, 0.5));
}

TEST(HtmlTable, AlignsNumbersAndEscapesHeads) {
  const std::string html = html_table({{"a < b", false}, {"n", true}}, {{{"x", "1"}, "chosen"}});
  EXPECT_THAT(html, HasSubstr("<th>a &lt; b</th><th class=\"n\">n</th>"));
  EXPECT_THAT(html, HasSubstr("<tr class=\"chosen\"><td>x</td><td class=\"n\">1</td></tr>"));
}

TEST(StrategyHtml, NamesOnlyWhatDiffersFromTheDefaults) {
  EXPECT_THAT(strategy_html({.tp = 2, .pp = 4, .dp = 1, .micro_batch = 4}),
              HasSubstr("tp2 pp4 dp1 <span class=\"soft\">mb4</span>"));
  EXPECT_THAT(strategy_html({.dp = 8, .recompute = workload::Recompute::kFull, .overlap = false}),
              HasSubstr("mb1 recompute=full no overlap"));
}

}  // namespace
}  // namespace regatta::report
