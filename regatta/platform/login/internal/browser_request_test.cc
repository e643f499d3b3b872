#include "regatta/platform/login/internal/browser_request.h"

#include <gmock/gmock.h>

namespace regatta::login {
namespace {

http::Request request(http::Headers headers) {
  return {.method = "POST", .path = "/", .query = {}, .headers = std::move(headers)};
}

TEST(Cookies, AreFoundByTheirWholeName) {
  EXPECT_EQ(find_cookie("a=1; __Host-regatta=s3cret; b=2", kSessionCookie), "s3cret");
  EXPECT_EQ(find_cookie("__Host-regatta=a=b", kSessionCookie), "a=b");
  EXPECT_EQ(find_cookie("x__Host-regatta=1;__host-regatta=2", kSessionCookie), "");
  EXPECT_EQ(find_cookie(";;=;__Host-regatta", kSessionCookie), "");
  EXPECT_EQ(find_cookie("", kSessionCookie), "");
}

TEST(Cookies, OfOneNameThatComeTwiceAreNone) {
  EXPECT_EQ(find_cookie("__Host-regatta=mine; __Host-regatta=planted", kSessionCookie), "");
}

TEST(Cookies, AreHiddenFromScriptsAndOtherSites) {
  EXPECT_EQ(session_cookie("s", Seconds{60}),
            "__Host-regatta=s; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=60");
}

TEST(RequestSite, IsWhatTheBrowserSays) {
  EXPECT_EQ(site_of(request({{"Sec-Fetch-Site", "same-origin"}})), RequestSite::kOwn);
  EXPECT_EQ(site_of(request({{"Sec-Fetch-Site", "none"}})), RequestSite::kOwn);
  EXPECT_EQ(site_of(request({{"Sec-Fetch-Site", "same-site"}})), RequestSite::kForeign);
  EXPECT_EQ(site_of(request(
                {{"Sec-Fetch-Site", "cross-site"}, {"Host", "h:1"}, {"Origin", "https://h:1"}})),
            RequestSite::kForeign);
}

TEST(RequestSite, IsTheOriginInOlderBrowsers) {
  EXPECT_EQ(site_of(request({{"Host", "h:1"}, {"Origin", "https://h:1"}})), RequestSite::kOwn);
  for (const char* origin : {"https://h:2", "http://h:1", "null", "https://h:1.evil"})
    EXPECT_EQ(site_of(request({{"Host", "h:1"}, {"Origin", origin}})), RequestSite::kForeign)
        << origin;
  EXPECT_EQ(site_of(request({{"Host", "h:1"}})), RequestSite::kUnknown);
}

}  // namespace
}  // namespace regatta::login
