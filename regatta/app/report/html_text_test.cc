#include "regatta/app/report/html_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/app/report/internal/number_text.h"

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
}

TEST(TimeFormat, WritesNoSignOnADifferenceThatRoundsToNothing) {
  EXPECT_EQ(TimeFormat({2}).difference({-1e-5}), "0.000 s");
  EXPECT_EQ(TimeFormat({2}).difference({0.012}), "+0.012 s");
  EXPECT_EQ(TimeFormat({2}).difference({-0.5}), "-0.500 s");
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
