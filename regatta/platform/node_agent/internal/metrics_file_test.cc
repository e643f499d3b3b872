#include "regatta/platform/node_agent/internal/metrics_file.h"

#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/base/os/file.h"

namespace regatta::node_agent {
namespace {

using nlohmann::json;

json read(MetricLines& lines) {
  return json::parse(lines.json());
}

TEST(MetricLines, MakesSeriesOfTheLinesThatAreMetrics) {
  MetricLines lines;
  lines.add(
      "{\"name\":\"loss\",\"step\":0,\"value\":4.5,\"time_ms\":7,\"unit\":\"nat\"}\n"
      "nonsense\n{\"name\":\"loss\"}\n{\"name\":\"a\\u0007b\",\"step\":1,\"value\":2}\n"
      "{\"name\":\"loss\",\"step\":1,\"value\":null}\n"
      "{\"predicted\":{\"step_time_s\":0.5,\"list\":[1]}}\n"
      "{\"name\":\"loss\",\"step\":2,\"value\":3");
  EXPECT_EQ(read(lines), json::parse(R"({"series":[{"name":"loss","unit":"nat","steps":[0,1],
      "times_ms":[7,null],"values":[4.5,null]}],"predicted":{"step_time_s":0.5}})"));
}

TEST(MetricLines, TakesBackTheStepsThatAreDoneAgain) {
  MetricLines lines;
  for (const int step : {0, 1, 2, 3, 2, 3, 4})
    lines.add(fmt::format("{{\"name\":\"x\",\"step\":{},\"value\":{}}}\n", step, step));
  EXPECT_EQ(read(lines)["series"][0]["steps"], json({0, 1, 2, 3, 4}));
}

TEST(MetricLines, ThinsLongSeriesAndKeepsTheLastPoint) {
  MetricLines lines;
  for (int step = 0; step < 50'000; ++step)
    lines.add(fmt::format("{{\"name\":\"x\",\"step\":{},\"value\":1}}\n", step));
  const json steps = read(lines)["series"][0]["steps"];
  EXPECT_LE(steps.size(), MetricSeries::kPointsMax + 1);
  EXPECT_GE(steps.size(), MetricSeries::kPointsMax / 2);
  EXPECT_EQ(steps[0], 0);
  EXPECT_EQ(steps.back(), 49'999);
}

TEST(MetricLines, BoundsTheNumberOfSeries) {
  MetricLines lines;
  for (int i = 0; i < 1000; ++i)
    lines.add(fmt::format("{{\"name\":\"x{}\",\"step\":0,\"value\":1}}\n", i));
  EXPECT_EQ(read(lines)["series"].size(), MetricLines::kSeriesMax);
}

TEST(ReadMetrics, JoinsTheAttemptsOfAReplica) {
  const os::TempFolder folder = os::TempFolder::create().value();
  for (const int attempt : {1, 2, 3}) {
    const std::string run = fmt::format("{}/7.{}.0", folder.path(), attempt);
    ASSERT_TRUE(os::make_folder(run));
    ASSERT_TRUE(make_metrics_file(run, nullptr, nullptr));
    ASSERT_TRUE(
        os::write_file(metrics_path(run),
                       fmt::format("{{\"name\":\"x\",\"step\":{0},\"value\":{0}}}\n", attempt)));
  }
  const json read = json::parse(read_metrics(folder.path() + "/7.2.0"));
  EXPECT_EQ(read["series"][0]["steps"], json({1, 2}));
  EXPECT_TRUE(read["predicted"].is_null());
  EXPECT_EQ(json::parse(read_metrics(folder.path() + "/none"))["series"].size(), 0U);
}

TEST(ReadMetrics, ReadsNoFileThatALinkNames) {
  const os::TempFolder folder = os::TempFolder::create().value();
  ASSERT_TRUE(
      os::write_file(folder.path() + "/secret", "{\"name\":\"x\",\"step\":1,\"value\":1}\n"));
  std::filesystem::create_symlink(folder.path() + "/secret", metrics_path(folder.path()));
  EXPECT_EQ(json::parse(read_metrics(folder.path()))["series"].size(), 0U);
}

}  // namespace
}  // namespace regatta::node_agent
