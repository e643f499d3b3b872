#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/network_report.h"
#include "regatta/app/report/pages.h"

namespace regatta::report {
namespace {

using testing::HasSubstr;
using testing::Not;

diag::TrafficAnalysis analysis(bool is_clear, double periodicity) {
  diag::TrafficAnalysis view{.duration = {10}, .interval = {0.01}};
  diag::StepTiming steps{.mean = {0.177}, .median = {0.177}, .periodicity = periodicity};
  steps.marks.assign(51, Seconds{1.0});
  view.inferred.push_back({.servers = {"s0", "s1"},
                           .flows = 2,
                           .steps = steps,
                           .is_clear = is_clear,
                           .jobs = {"tiny"}});
  return view;
}

TEST(TrafficReport, StatesAClearStepWithItsPeriodicity) {
  const diag::TrafficAnalysis view = analysis(true, 0.83);
  EXPECT_THAT(traffic_text(view), HasSubstr("step 177 ms over 50 steps, periodicity 0.83 (high)"));
  EXPECT_EQ(traffic_json(view)["inferred"][0]["steps"]["step_time_s"], 0.177);
}

TEST(TrafficReport, StatesNoStepThatIsNotClear) {
  const diag::TrafficAnalysis view = analysis(false, 0.43);
  EXPECT_THAT(traffic_text(view), HasSubstr("step time not clear yet, periodicity 0.43 (low)"));
  EXPECT_THAT(traffic_text(view), Not(HasSubstr("177 ms")));
  const nlohmann::json one = traffic_json(view)["inferred"][0];
  EXPECT_TRUE(one["steps"].is_null());
  EXPECT_EQ(one["periodicity"], 0.43);
}

TEST(TrafficReport, WritesEachInferredJobOnThePage) {
  const std::string page = traffic_html(analysis(true, 0.83), "lab <tiny>");
  EXPECT_THAT(page, HasSubstr("2 flows between s0, s1: step 177 ms over 50 steps"));
  EXPECT_THAT(page, HasSubstr("lab &lt;tiny&gt;"));
}

TEST(TrafficReport, CountsOnlyTheIntervalsSinceTheLastLine) {
  diag::TrafficRecord record{.start = {100}, .interval = {0.5}, .intervals = 4};
  record.ranks = {{.job = "tiny", .world = 1, .rank = 0, .server = "s0", .operations = {}},
                  {.job = "tiny", .world = 1, .rank = 1, .server = "s1", .operations = {}}};
  record.flows = {{.from = "s0",
                   .to = "s1",
                   .from_rank = 0,
                   .to_rank = 1,
                   .round_trip = {},
                   .bytes = {9e6, 9e6, 0, 2e6}}};
  const nlohmann::json line = traffic_interval_json(record, Seconds{1.0});
  EXPECT_EQ(line["at_s"], 1.0);
  ASSERT_EQ(line["pairs"].size(), 1U);
  EXPECT_EQ(line["pairs"][0]["mean_Bps"], 2e6);
}

}  // namespace
}  // namespace regatta::report
