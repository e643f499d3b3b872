#include "regatta/base/http/internal/request_target.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::http {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

Request target(std::string_view text) {
  Request request;
  EXPECT_TRUE(decode_target(text, request)) << text;
  return request;
}

TEST(RequestTarget, IsDecodedIntoPathAndQuery) {
  const Request request = target("/v1/jobs/a%20b%2Fc?limit=5&after=x%3D1+y&flag&&=v");
  EXPECT_EQ(request.path, "/v1/jobs/a b/c");
  EXPECT_THAT(request.query, ElementsAre(Pair("limit", "5"), Pair("after", "x=1 y"),
                                         Pair("flag", ""), Pair("", "v")));
}

TEST(RequestTarget, MayHaveSchemeAndHost) {
  EXPECT_EQ(target("http://host:80/a?b=c").path, "/a");
  EXPECT_EQ(target("https://host").path, "/");
  EXPECT_THAT(target("/+").query, IsEmpty());
  EXPECT_EQ(target("/+").path, "/+");
}

TEST(RequestTarget, IsRefusedWhenItIsNotWellFormed) {
  for (const std::string_view text :
       {"", "a", "*", "host:443", "/%", "/%4", "/%4x", "/%-1", "/%00", "/%0a", "/?a=%zz", "/..",
        "/a/../b", "/a/%2e%2e/b", "/.", "http://host?a", "//../"}) {
    Request request;
    EXPECT_FALSE(decode_target(text, request)) << text;
  }
}

}  // namespace
}  // namespace regatta::http
