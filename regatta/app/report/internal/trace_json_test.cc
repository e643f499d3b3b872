#include "regatta/app/report/internal/trace_json.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/sample_run.h"
#include "regatta/app/report/run_result.h"

namespace regatta::report {
namespace {

using Json = nlohmann::json;

Json trace_of(const RunResult& result) {
  return Json::parse(trace_json_text(result));
}

TEST(TraceJson, HasAProcessForThePredictionAndOneForTheMeasurement) {
  const Json trace = trace_of(sample_run_result());
  std::map<int, std::string> processes;
  for (const Json& event : trace["traceEvents"])
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
  EXPECT_EQ(processes, (std::map<int, std::string>{{1, "predicted"}, {2, "measured"}}));
}

TEST(TraceJson, NamesAThreadPerRankWithItsPlaceAndOneForTheBackground) {
  const Json trace = trace_of(sample_run_result());
  std::map<std::pair<int, int>, std::string> threads;
  for (const Json& event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      threads[{event["pid"], event["tid"]}] = event["args"]["name"];
  EXPECT_EQ(threads.size(), 32U);
  EXPECT_EQ((threads[{1, 7}]), "rank 3 (s1/1)");
  EXPECT_EQ((threads[{2, 8}]), "rank 3 (s1/1) background");
}

TEST(TraceJson, EveryEventHasWhatAViewerNeeds) {
  const RunResult result = sample_run_result();
  const Json trace = trace_of(result);
  std::size_t spans = 0;
  for (const Json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event["pid"].is_number_integer());
    ASSERT_TRUE(event["tid"].is_number_integer());
    if (event["ph"] == "M") continue;
    ASSERT_EQ(event["ph"], "X");
    ASSERT_GE(event["ts"].get<double>(), -1e5);
    ASSERT_GE(event["dur"].get<double>(), 0);
    ++spans;
  }
  EXPECT_EQ(spans,
            result.main.plan.prediction.timeline.size() + result.main.measured.timeline.size());
}

TEST(TraceJson, CountsMicrosecondsFromTheFirstSpan) {
  RunResult result = sample_run_result();
  result.main.plan.prediction.timeline = {{.rank = {1},
                                           .phase = workload::Phase::kBackward,
                                           .micro_batch = 2,
                                           .layer = 5,
                                           .start = {0.25},
                                           .duration = {0.125}}};
  result.main.measured.timeline = {{.rank = {0}, .step = 7, .start = {12.5}, .duration = {1}},
                                   {.rank = {1}, .step = 7, .start = {13.0}, .duration = {1}}};
  std::vector<Json> spans;
  const Json trace = trace_of(result);
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") spans.push_back(event);
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0]["name"], "backward mb2 layer 5");
  EXPECT_EQ(spans[0]["tid"], 3);
  EXPECT_EQ(spans[0]["ts"], 250000.0);
  EXPECT_EQ(spans[0]["dur"], 125000.0);
  EXPECT_EQ(spans[0]["args"]["layer"], 5);
  EXPECT_EQ(spans[1]["ts"], 0.0);
  EXPECT_EQ(spans[2]["ts"], 500000.0);
}

TEST(TraceJson, IsValidWithoutAnySpan) {
  RunResult result = sample_run_result();
  result.main.plan.prediction.timeline.clear();
  result.main.measured.timeline.clear();
  EXPECT_EQ(trace_of(result)["displayTimeUnit"], "ms");
}

}  // namespace
}  // namespace regatta::report
