#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/planning/plan/simulated_plan.h"
#include "regatta/planning/plan/test_plans.h"

namespace regatta::plan {
namespace {

SimulatedSearchResult searched() {
  topo::Cluster cluster = example_cluster();
  const auto result =
      search_simulated_plans(example_job(), cluster, cost::described_rates(cluster));
  EXPECT_TRUE(result.has_value());
  return result ? *result : SimulatedSearchResult{};
}

TEST(SearchToJson, WritesAsManyPlansAsWereAskedFor) {
  const SimulatedSearchResult result = searched();
  const topo::Cluster cluster = example_cluster();
  const auto json = search_to_json(result, cluster, 3);
  EXPECT_EQ(json["ranked"].size(), 3U);
  EXPECT_EQ(json["evaluated"], result.evaluated);
  EXPECT_EQ(json["rejected"].size(), result.rejected.size());
  EXPECT_TRUE(search_to_json(result, cluster, 0)["ranked"].empty());
  EXPECT_TRUE(search_to_json(result, cluster, -1)["ranked"].empty());
  EXPECT_EQ(search_to_json(result, cluster, 1 << 30)["ranked"].size(), result.ranked.size());
}

TEST(SearchToJson, WritesAPlanWithItsPredictionInBaseUnits) {
  const SimulatedSearchResult result = searched();
  const topo::Cluster cluster = example_cluster();
  const SimulatedPlan& best = result.ranked.front();
  const auto plan = search_to_json(result, cluster, 1)["ranked"][0];
  EXPECT_EQ(plan["strategy"]["tp"], best.strategy.tp);
  EXPECT_EQ(plan["placement"].size(), 8U);
  EXPECT_EQ(plan["placement"][0], topo::to_string(cluster, best.placement[0]));
  const auto& predicted = plan["predicted"];
  EXPECT_EQ(predicted["step_time_s"], best.prediction.step_time.value);
  double phases = 0;
  for (const auto& [name, seconds] : predicted["phases"].items()) {
    EXPECT_TRUE(name.ends_with("_s")) << name;
    phases += seconds.get<double>();
  }
  EXPECT_NEAR(phases, best.prediction.step_time.value, 1e-9);
  EXPECT_EQ(predicted["traffic"].size(), best.prediction.traffic.size());
}

TEST(SearchToJson, WritesTheMemoryAsPartsThatSumToTheTotal) {
  const auto memory = memory_to_json(searched().ranked.front().prediction.memory);
  long long sum = 0;
  for (const auto& [name, bytes] : memory.items()) {
    EXPECT_TRUE(name.ends_with("_bytes")) << name;
    if (name != "total_bytes") sum += bytes.get<long long>();
  }
  EXPECT_EQ(memory["total_bytes"], sum);
}

TEST(SearchToJson, SaysWhyTheRestWasRuledOut) {
  const auto written = search_to_json(searched(), example_cluster(), 1);
  ASSERT_FALSE(written["rejected"].empty());
  for (const auto& one : written["rejected"]) {
    const std::string kind = one["kind"];
    EXPECT_TRUE(kind == "does_not_divide" || kind == "memory" || kind == "slower") << kind;
    EXPECT_FALSE(one["reason"].get<std::string>().empty());
  }
}

}  // namespace
}  // namespace regatta::plan
