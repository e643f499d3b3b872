#include "regatta/platform/api/access.h"

#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>

namespace regatta::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Routes, AreFoundWithTheirParameters) {
  const RouteMatch match = find_route("POST", "/v1/jobs/bert-17/cancel");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.route->id, RouteId::kCancelJob);
  EXPECT_THAT(match.parameters, ElementsAre("bert-17"));
  EXPECT_EQ(find_route("HEAD", "/v1/jobs").route->id, RouteId::kListJobs);
  EXPECT_EQ(find_route("GET", "/v1/nodes/connect").route->id, RouteId::kConnectNode);
  EXPECT_EQ(find_route("GET", "/v1/nodes/n7").route->id, RouteId::kGetNode);
}

TEST(Routes, TellAnotherMethodFromNoPath) {
  const RouteMatch other = find_route("DELETE", "/v1/jobs");
  EXPECT_EQ(other.route, nullptr);
  EXPECT_TRUE(other.is_other_method);
  for (const char* path :
       {"/", "/v1", "/v1/jobs/", "/v1/jobs//cancel", "/v1/jobs/1/cancel/x", ""}) {
    const RouteMatch none = find_route("GET", path);
    EXPECT_EQ(none.route, nullptr) << path;
    EXPECT_FALSE(none.is_other_method) << path;
    EXPECT_THAT(none.parameters, IsEmpty());
  }
}

TEST(Routes, AreEachInTheTableOnceAndOnlyReadersAreOpenToViewers) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Route& route : routes()) {
    EXPECT_TRUE(seen.emplace(route.method, route.pattern).second) << route.pattern;
    if (route.method == "GET" || !route.least) continue;
    EXPECT_GT(*route.least, AccessRole::kViewer) << route.pattern;
  }
}

}  // namespace
}  // namespace regatta::api
