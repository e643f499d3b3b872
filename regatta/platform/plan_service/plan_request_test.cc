#include "regatta/platform/plan_service/plan_request.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace regatta::plan_service {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const auto kInTime = [] { return false; };

std::string error_of(const std::string& body) {
  const auto answer = answer_plan_request(body, kInTime);
  return answer ? std::string() : answer.error().message;
}

TEST(PlanRequest, PlansAPublishedModelOnServersOfAPreset) {
  const auto answer = answer_plan_request(
      R"({"job":{"model":{"preset":"gpt3-2.7b"},"global_batch":64,"precision":"bf16"},
          "cluster":{"server":"dgx-h100","servers":2},"top":3})",
      kInTime);
  ASSERT_TRUE(answer) << answer.error().message;
  const json read = json::parse(*answer);
  EXPECT_EQ(read["devices"], 16);
  EXPECT_GT(read["plan"]["step_time_s"], 0.0);
  EXPECT_LT(read["plan"]["interval"]["low_s"], read["plan"]["step_time_s"]);
  EXPECT_TRUE(read["plan"]["fits"].get<bool>());
  EXPECT_EQ(read["alternatives"].size(), 2U);
  EXPECT_GE(read["alternatives"][0]["step_time_s"], read["plan"]["step_time_s"]);
}

TEST(PlanRequest, PlansOnCpusOfAClusterThatIsWrittenOut) {
  const auto answer = answer_plan_request(
      R"({"job":{"model":{"kind":"gpt","layers":2,"hidden":64,"heads":4,"seq":16,"vocab":256},
                 "global_batch":8},
          "cluster":{"server_types":{"c":{"devices":{"count":2,"type":"cpu","cpu_share":"50%"},
                     "nics":{"count":1,"rate":"1Gbps"}}},"servers":{"count":1,"type":"c"}}})",
      kInTime);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(json::parse(*answer)["devices"], 2);
}

TEST(PlanRequest, NamesWhatIsWrong) {
  EXPECT_THAT(error_of("[]"), HasSubstr("body"));
  EXPECT_THAT(error_of(R"({"job":{}})"), HasSubstr("cluster"));
  EXPECT_THAT(error_of(R"({"job":3,"cluster":{"server":"dgx-h100"}})"), HasSubstr("job: no map"));
  EXPECT_THAT(error_of(R"({"job":{"model":{"preset":"gpt2-small"},"global_batch":8},
                           "cluster":{"server":"dgx-h101"}})"),
              HasSubstr("dgx-h101"));
  EXPECT_THAT(error_of(R"({"job":{"model":{"from":"/etc/passwd"},"global_batch":8},
                           "cluster":{"server":"dgx-h100"}})"),
              HasSubstr("from"));
  EXPECT_THAT(error_of(R"({"job":{"model":{"preset":"gpt2-small"},"global_batch":8},
                           "cluster":{"server":"dgx-h100"},"constraints":["pp < "]})"),
              HasSubstr("constraints"));
}

TEST(PlanRequest, EndsWhenItIsLate) {
  const auto answer = answer_plan_request(
      R"({"job":{"model":{"preset":"gpt3-175b"},"global_batch":1536},
          "cluster":{"server":"dgx-h100","servers":128}})",
      [] { return true; });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kTimeout);
}

TEST(PlanPresets, OffersModelsAndServers) {
  const json presets = json::parse(plan_presets());
  EXPECT_GT(presets["models"].size(), 20U);
  EXPECT_GT(presets["servers"].size(), 5U);
  for (const json& cluster : presets["clusters"]) {
    const json body = {{"job",
                        {{"model", {{"preset", "gpt3-2.7b"}}},
                         {"global_batch", 2304},
                         {"precision", "bf16"},
                         {"strategy", {{"tp", 1}, {"pp", 1}}}}},
                       {"cluster", cluster["cluster"]}};
    EXPECT_EQ(error_of(body.dump()), "") << cluster["name"];
  }
}

}  // namespace
}  // namespace regatta::plan_service
