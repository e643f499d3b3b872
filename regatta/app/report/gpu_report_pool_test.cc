#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/gpu_report.h"

namespace regatta::report {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): 80_GiB reads as the data sheet
using testing::HasSubstr;
using testing::Not;

std::vector<remote::ServerView> pool() {
  const remote::PoolDevice device{.server = "a:7000",
                                  .gpu = 1,
                                  .memory = 80_GiB,
                                  .memory_free = {},
                                  .compute_free_ppm = 250'000,
                                  .tenants = 2,
                                  .has_rdma = true};
  return {{.server = "a:7000", .devices = std::vector{device}},
          {.server = "b:7000", .devices = Error{Code::kUnavailable, "b:7000: no answer"}}};
}

TEST(GpuPool, IsATableOfTheServersThatAnswer) {
  const std::string text = gpu_pool_table(pool());
  EXPECT_THAT(text, HasSubstr("80 GiB"));
  EXPECT_THAT(text, HasSubstr("unknown"));
  EXPECT_THAT(text, Not(HasSubstr("b:7000")));
}

TEST(GpuPool, NamesTheServersThatDoNotAnswerInItsJson) {
  const nlohmann::json json = gpu_pool_json(pool());
  EXPECT_EQ(json["gpus"][0]["compute_free_percent"], 25.0);
  EXPECT_TRUE(json["gpus"][0]["memory_free_bytes"].is_null());
  EXPECT_EQ(json["unreachable"][0]["why"], "b:7000: no answer");
}

}  // namespace
}  // namespace regatta::report
