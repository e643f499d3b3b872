#include "regatta/platform/api/problem.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace regatta::api {
namespace {

TEST(Problem, HasTheRemedyAsItsHint) {
  const http::Response response =
      problem({Code::kConflict, "job \"a\"-1: it is over; submit it again"});
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.content_type, "application/problem+json");
  const nlohmann::json body = nlohmann::json::parse(response.body);
  EXPECT_EQ(body.at("detail"), "job \"a\"-1: it is over; submit it again");
  EXPECT_EQ(body.at("hint"), "submit it again");
  EXPECT_EQ(body.at("status"), 409);
}

TEST(Problem, SaysWhenToTryAgain) {
  EXPECT_EQ(problem({Code::kExhausted, "x"}).headers.size(), 1U);
  EXPECT_TRUE(problem({Code::kNotFound, "x"}).headers.empty());
}

}  // namespace
}  // namespace regatta::api
