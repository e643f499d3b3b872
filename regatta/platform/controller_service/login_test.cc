// Browsers at a running controller: the page, sessions, and pages of other origins.
#include <string>

#include <gmock/gmock.h>

#include "regatta/platform/controller_service/test_service.h"

namespace regatta::controller_service {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class LoginTest : public testing::Test {
 protected:
  // A request that the page sends; `cookie`: NAME=VALUE.
  http::Response from_page(const std::string& method, const std::string& target,
                           const std::string& cookie, const std::string& body = "") const {
    http::Headers headers = {{"Sec-Fetch-Site", "same-origin"}};
    if (!cookie.empty()) headers.emplace_back("Cookie", cookie);
    return service_.send(method, target, "", body, headers);
  }
  static std::string cookie_of(const http::Response& response) {
    const std::string cookie(http::find_header(response.headers, "Set-Cookie"));
    return cookie.substr(0, cookie.find(';'));
  }
  std::string new_once() const {
    const http::Response made = service_.send("POST", "/v1/tokens", admin_, R"({"use":"login"})");
    EXPECT_EQ(made.status, 201) << made.body;
    return R"({"once":")" + nlohmann::json::parse(made.body).at("secret").get<std::string>() +
           "\"}";
  }
  std::string logged_in() const {
    return cookie_of(from_page("POST", "/v1/login", "", new_once()));
  }

  os::TempFolder folder_ = os::TempFolder::create().value();
  TestService service_{folder_.path()};
  std::string admin_ = service_.admin_token();
};

TEST_F(LoginTest, TakesATokenOfOneLoginOnce) {
  const std::string once = new_once();
  const http::Response first = from_page("POST", "/v1/login", "", once);
  ASSERT_EQ(first.status, 200) << first.body;
  const std::string cookie(http::find_header(first.headers, "Set-Cookie"));
  EXPECT_THAT(cookie, StartsWith("__Host-regatta="));
  EXPECT_THAT(cookie, HasSubstr("Secure; HttpOnly; SameSite=Strict"));
  const nlohmann::json session =
      nlohmann::json::parse(from_page("GET", "/v1/session", cookie_of(first)).body);
  EXPECT_EQ(session.at("user"), "admin");
  EXPECT_EQ(session.at("role"), "admin");
  EXPECT_EQ(nlohmann::json::parse(first.body), session);
  EXPECT_EQ(from_page("POST", "/v1/login", "", once).status, 401);
  // It is not in the store as it is in the cookie.
  EXPECT_THAT(service_.send("GET", "/v1/tokens", admin_).body,
              Not(HasSubstr(cookie_of(first).substr(15))));
}

TEST_F(LoginTest, TakesThePasswordThatAnAdminSets) {
  ASSERT_EQ(service_.send("PUT", "/v1/users/ada", admin_, R"({"password":"short"})").status, 400);
  ASSERT_EQ(
      service_.send("PUT", "/v1/users/ada", admin_, R"({"role":"user","password":"correct horse"})")
          .status,
      200);
  const char* right = R"({"user":"ada","password":"correct horse"})";
  const http::Response made = from_page("POST", "/v1/login", "", right);
  ASSERT_EQ(made.status, 200) << made.body;
  EXPECT_EQ(from_page("GET", "/v1/jobs", cookie_of(made)).status, 200);
  EXPECT_EQ(from_page("POST", "/v1/login", "", R"({"user":"ada","password":"wrong"})").status, 401);
  EXPECT_EQ(from_page("POST", "/v1/login", "", R"({"user":"eve","password":"wrong"})").status, 401);
  EXPECT_EQ(from_page("POST", "/v1/login", "", R"({"user":"admin","password":"x"})").status, 401);
  // A new password ends the sessions of before, and so does a user that is disabled.
  service_.send("PUT", "/v1/users/ada", admin_, R"({"password":"another horse"})");
  EXPECT_EQ(from_page("GET", "/v1/jobs", cookie_of(made)).status, 401);
}

TEST_F(LoginTest, MakesGuessersWait) {
  int status = 0;
  for (int i = 0; i < 4; ++i)
    status = from_page("POST", "/v1/login", "", R"({"user":"ada","password":"guess"})").status;
  EXPECT_EQ(status, 429);
  EXPECT_EQ(from_page("POST", "/v1/login", "", new_once()).status, 200);
}

TEST_F(LoginTest, EndsTheSessionAtLogoutAndWithTheUser) {
  const std::string cookie = logged_in();
  EXPECT_EQ(from_page("GET", "/v1/jobs", cookie).status, 200);
  const http::Response out = from_page("POST", "/v1/logout", cookie);
  EXPECT_EQ(out.status, 200);
  EXPECT_THAT(std::string(http::find_header(out.headers, "Set-Cookie")), HasSubstr("Max-Age=0"));
  EXPECT_EQ(from_page("GET", "/v1/jobs", cookie).status, 401);
  const std::string other = logged_in();
  const auto disable = [&] {
    return service_.send("PUT", "/v1/users/admin", admin_, R"({"disabled":true})").status;
  };
  EXPECT_EQ(disable(), 409) << "nobody could undo it";
  service_.send("PUT", "/v1/users/eve", admin_, R"({"role":"admin"})");
  EXPECT_EQ(disable(), 200);
  EXPECT_EQ(from_page("GET", "/v1/jobs", other).status, 401);
}

TEST_F(LoginTest, RefusesWhatPagesOfOtherOriginsSendWithTheCookie) {
  const std::string cookie = logged_in();
  const auto cancel = [&](http::Headers headers) {
    headers.emplace_back("Cookie", cookie);
    return service_.send("POST", "/v1/jobs/1/cancel", "", "", std::move(headers)).status;
  };
  EXPECT_EQ(cancel({{"Sec-Fetch-Site", "same-origin"}}), 404);
  EXPECT_EQ(cancel({{"Sec-Fetch-Site", "same-site"}}), 403);
  EXPECT_EQ(cancel({{"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(cancel({{"Origin", "https://evil.example"}}), 403);
  EXPECT_EQ(cancel({{"Origin", "null"}}), 403);
  EXPECT_EQ(cancel({}), 403);
  EXPECT_EQ(service_.send("GET", "/v1/jobs", "", "", {{"Cookie", cookie}}).status, 200);
  EXPECT_EQ(
      service_
          .send("GET", "/v1/jobs", "", "", {{"Cookie", cookie}, {"Sec-Fetch-Site", "same-site"}})
          .status,
      403);
  EXPECT_EQ(
      service_.send("POST", "/v1/login", "", new_once(), {{"Sec-Fetch-Site", "cross-site"}}).status,
      403);
}

TEST_F(LoginTest, SaysHowToBuildThePageWhereThereIsNone) {
  const http::Response page = service_.send("GET", "/", "");
  EXPECT_EQ(page.status, 404);
  EXPECT_THAT(page.body, HasSubstr("npm"));
}

TEST(RateLimits, AreForUsersAndStrangersAndNotForOperators) {
  const os::TempFolder folder = os::TempFolder::create().value();
  const TestService service(folder.path(), [](ServiceOptions& options) {
    options.limits = {.user = {.per_second = 0.01, .burst = 2},
                      .address = {.per_second = 0.01, .burst = 3},
                      .has_loopback = true};
  });
  const std::string admin = service.admin_token();
  service.send("PUT", "/v1/users/ada", admin, R"({"role":"user"})");
  const http::Response made = service.send("POST", "/v1/tokens", admin, R"({"user":"ada"})");
  const std::string ada = nlohmann::json::parse(made.body).at("secret");
  EXPECT_EQ(service.send("GET", "/v1/jobs", ada).status, 200);
  EXPECT_EQ(service.send("GET", "/v1/jobs", ada).status, 200);
  const http::Response refused = service.send("GET", "/v1/jobs", ada);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(http::find_header(refused.headers, "Retry-After"), "100");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(service.send("GET", "/v1/jobs", "rgt_guess").status, 401);
  EXPECT_EQ(service.send("GET", "/v1/jobs", "rgt_guess").status, 429);
  EXPECT_EQ(service.send("GET", "/", "").status, 429);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(service.send("GET", "/v1/jobs", admin).status, 200);
}

TEST(Page, ComesWithAStrictPolicyAndOnlyFromItsFolder) {
  const os::TempFolder folder = os::TempFolder::create().value();
  const std::string web = folder.path() + "/web";
  ASSERT_TRUE(os::make_folder(web + "/assets"));
  ASSERT_TRUE(os::write_file(web + "/index.html", "<p>"));
  const TestService service(folder.path(), [&](ServiceOptions& options) { options.page = web; });
  const http::Response page = service.send("GET", "/", "");
  EXPECT_EQ(page.body, "<p>");
  const std::string policy(http::find_header(page.headers, "Content-Security-Policy"));
  EXPECT_THAT(policy, HasSubstr("script-src 'self'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_EQ(http::find_header(page.headers, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(http::find_header(service.send("GET", "/healthz", "").headers, "Referrer-Policy"),
            "same-origin");
  for (const char* path : {"/%2e%2e/ca.key", "/assets/..%2f..%2fca.key", "/ca.key", "/%2fca.key"}) {
    const http::Response other = service.send("GET", path, "");
    EXPECT_GE(other.status, 400) << path;
    EXPECT_THAT(other.body, Not(HasSubstr("PRIVATE KEY"))) << path;
  }
  EXPECT_EQ(service.send("GET", "/v1/none", "").status, 404);
}

}  // namespace
}  // namespace regatta::controller_service
