#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/sample_run.h"
#include "regatta/app/report/run_result.h"

namespace regatta::report {
namespace {

using Json = nlohmann::json;

TEST(ResultJson, HasTheKeysThatProgramsRead) {
  const Json json = Json::parse(result_json_text(sample_run_result()));
  EXPECT_EQ(json["plan"]["strategy"]["tp"], 2);
  EXPECT_EQ(json["plan"]["strategy"]["recompute"], "none");
  EXPECT_EQ(json["plan"]["placement"].size(), 8U);
  EXPECT_EQ(json["plan"]["placement"][3], "s1/1");
  EXPECT_GT(json["predicted"]["step_time_s"], 0.0);
  EXPECT_GT(json["measured"]["step_time_s"], 0.0);
  EXPECT_EQ(json["predicted"]["phases"].size(), workload::kPhaseCount);
  EXPECT_EQ(json["measured"]["phases"].size(), workload::kPhaseCount);
  EXPECT_TRUE(json["predicted"]["phases"].contains("forward_s"));
  EXPECT_TRUE(json["measured"]["phases"].contains("dp_comm_s"));
  EXPECT_EQ(json["predicted"]["memory_per_device_bytes"], 109'000'000);
  EXPECT_EQ(json["measured"]["steps"].size(), 50U);
  EXPECT_TRUE(json["measured"]["steps"][0].contains("loss"));
  EXPECT_EQ(json["candidates"].size(), 8U);
  EXPECT_EQ(json["rejected"].size(), 3U);
  EXPECT_EQ(json["job"]["name"], "gpt-small");
  EXPECT_EQ(json["cluster"]["devices"], 8U);
}

TEST(ResultJson, PhasesOfThePredictionSumToItsStep) {
  const Json json = Json::parse(result_json_text(sample_run_result()));
  double sum = 0;
  for (const auto& [key, value] : json["predicted"]["phases"].items())
    sum += value.get<double>();
  EXPECT_NEAR(sum, json["predicted"]["step_time_s"].get<double>(), 1e-9);
}

TEST(ResultJson, HoldsTheComparisonAndTheSweep) {
  const RunResult result = sample_run_result();
  const Json json = Json::parse(result_json_text(result));
  EXPECT_NEAR(json["compare"]["speedup"].get<double>(),
              result.compare->measured.step_time / result.main.measured.step_time, 1e-12);
  EXPECT_EQ(json["compare"]["plan"]["strategy"]["dp"], 8);
  EXPECT_EQ(json["sweep"]["plans"].size(), 8U);
  EXPECT_GT(json["sweep"]["spearman"], 0.9);
  EXPECT_TRUE(json["sweep"]["plans"][2]["measured"].contains("step_time_s"));
}

TEST(ResultJson, HasNullWhereTheRunHadNoComparisonOrSweep) {
  RunResult result = sample_run_result();
  result.compare.reset();
  result.sweep.clear();
  const Json json = Json::parse(result_json_text(result));
  EXPECT_TRUE(json["compare"].is_null());
  EXPECT_TRUE(json["sweep"].is_null());
}

TEST(ResultJson, NamesBothEndsOfEachLink) {
  const Json json = Json::parse(result_json_text(sample_run_result()));
  const Json& first = json["measured"]["traffic"][0];
  EXPECT_EQ(first["from"], "s0");
  EXPECT_EQ(first["to"], "leaf0");
  EXPECT_GT(first["share_of_rate"], 0.0);
  EXPECT_EQ(first["rate_Bps"], 25e6);
}

TEST(ResultJson, IsTheSameBytesForTheSameRun) {
  EXPECT_EQ(result_json_text(sample_run_result()), result_json_text(sample_run_result()));
}

TEST(ResultJson, SurvivesANameThatIsNotUtf8) {
  RunResult result = sample_run_result();
  result.job.name = "bad\xff";
  EXPECT_FALSE(Json::parse(result_json_text(result)).empty());
}

}  // namespace
}  // namespace regatta::report
