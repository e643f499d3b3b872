#include "regatta/base/http/http_client.h"

#include <atomic>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/http/test_server.h"

namespace regatta::http {
namespace {

using ::testing::HasSubstr;

void echo_body(std::unique_ptr<Exchange> exchange) {
  const Request& request = exchange->request();
  if (request.path == "/never") {
    // For the test's length: never answered.
    static std::vector<std::unique_ptr<Exchange>> kept;
    kept.push_back(std::move(exchange));
    return;
  }
  exchange->respond({.status = request.path == "/missing" ? 404 : 200,
                     .headers = {{"X-Path", request.path}},
                     .body = request.path == "/missing" ? "why" : request.body});
}

TEST(HttpClient, SendsRequestsOverOneConnection) {
  TestServer server({}, test_server_identity(), echo_body);
  HttpClient client = server.client();
  for (int i = 0; i < 3; ++i) {
    const std::string body(100'000 * static_cast<std::size_t>(i), 'x');
    const auto response = client.send("POST", "/a%20b", {{"X-Name", "1"}}, body);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, body);
    EXPECT_EQ(find_header(response->headers, "x-path"), "/a b");
  }
  EXPECT_EQ(client.send("HEAD", "/").value().status, 200);
  EXPECT_EQ(client.send("GET", "/missing").value().status, 404);
  EXPECT_EQ(server.connection_count(), 1U);
}

TEST(HttpClient, KeepsTheBodyOfAnErrorApartFromAStream) {
  TestServer server({}, test_server_identity(), echo_body);
  HttpClient client = server.client();
  std::string got;
  const auto take = [&got](std::string_view piece) {
    got += piece;
    return true;
  };
  const auto response = client.stream("GET", "/missing", {}, take);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "why");
  EXPECT_EQ(got, "");
}

TEST(HttpClient, FollowsAServerThatNamesAnotherOne) {
  TestServer leader({}, test_server_identity(), echo_body);
  const std::string url = leader.client_options().url;
  std::atomic<int> asked = 0;
  TestServer follower({}, test_server_identity(), [&](std::unique_ptr<Exchange> exchange) {
    ++asked;
    exchange->respond({.status = 307, .headers = {{"Location", url + "/a?b=1"}}});
  });
  HttpClient client = follower.client();
  for (int i = 0; i < 2; ++i) {
    const auto response = client.send("POST", "/a?b=1", {}, "body");
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "body");
  }
  EXPECT_EQ(asked, 1);  // then the client knows the leader
}

TEST(HttpClient, RefusesToBeSentFromHttpsToHttp) {
  TestServer server({}, test_server_identity(), [](std::unique_ptr<Exchange> exchange) {
    exchange->respond({.status = 307, .headers = {{"Location", "http://127.0.0.1:1/"}}});
  });
  HttpClient client = server.client();
  EXPECT_EQ(client.send("GET", "/").error().code, Code::kInvalidInput);
}

TEST(HttpClient, TriesTheNextOfSeveralServers) {
  TestServer busy({}, test_server_identity(),
                  [](std::unique_ptr<Exchange> exchange) { exchange->respond({.status = 503}); });
  TestServer server({}, test_server_identity(), echo_body);
  ClientOptions options;
  options.url =
      "https://127.0.0.1:1," + busy.client_options().url + "," + server.client_options().url;
  options.ca = test_authority().certificate;
  auto client = HttpClient::create(options);
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ(client->send("POST", "/", {}, "body")->body, "body");
  EXPECT_EQ(HttpClient::create({.url = "https://a,http://b"}).error().code, Code::kInvalidInput);
}

TEST(HttpClient, SendsAgainWhereTheServerHadClosedTheKeptConnection) {
  TestServer server({.idle_limit{0.05}}, test_server_identity(), echo_body);
  HttpClient client = server.client();
  ASSERT_TRUE(client.send("GET", "/a"));
  os::sleep_for(Seconds{0.15});
  EXPECT_TRUE(client.send("POST", "/a", {}, "x"));
}

TEST(HttpClient, EndsWithATimeoutWhenNoResponseComes) {
  TestServer server({}, {}, echo_body);
  ClientOptions options = server.client_options();
  options.response_limit = {0.05};
  const auto response = HttpClient::create(options).value().send("GET", "/never");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTimeout);
}

TEST(HttpClient, TrustsTheGivenAuthorityAlone) {
  TestServer server({}, test_server_identity(), echo_body);
  ClientOptions options = server.client_options();
  options.ca = tls::create_authority("other", unix_now(), Seconds{86400}).value().certificate;
  const auto response = HttpClient::create(options).value().send("GET", "/");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kInvalidInput);
  EXPECT_THAT(response.error().message, HasSubstr("not trusted"));
  options.ca.clear();
  EXPECT_EQ(HttpClient::create(options).error().code, Code::kInvalidInput);
  options.ca_hash = tls::certificate_hash(test_authority().certificate).value();
  EXPECT_TRUE(HttpClient::create(options).value().send("GET", "/"));
  options.ca_hash.back() = options.ca_hash.back() == 'a' ? 'b' : 'a';
  EXPECT_EQ(HttpClient::create(options).value().send("GET", "/").error().code, Code::kInvalidInput);
}

TEST(HttpClient, RefusesAServerOfAnotherName) {
  const tls::Identity identity =
      tls::issue(test_authority(), {.common_name = "server", .hosts = {"other.example"}},
                 unix_now(), Seconds{86400})
          .value();
  TestServer server({}, {identity.certificate, identity.private_key, ""}, echo_body);
  EXPECT_EQ(server.client().send("GET", "/").error().code, Code::kInvalidInput);
}

TEST(HttpClient, NamesAServerThatIsNotThere) {
  ClientOptions options;
  options.url = "http://127.0.0.1:1";
  const auto response = HttpClient::create(options).value().send("GET", "/");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("127.0.0.1"));
}

TEST(HttpClient, RefusesUrlsAndRequestsThatAreNone) {
  for (const std::string url :
       {"", "127.0.0.1:80", "ftp://x", "http://", "http://a/b", "http://user@host", "http://a b"}) {
    ClientOptions options;
    options.url = url;
    EXPECT_EQ(HttpClient::create(options).error().code, Code::kInvalidInput) << url;
  }
  ClientOptions options;
  options.url = "http://127.0.0.1:1";
  HttpClient client = HttpClient::create(options).value();
  EXPECT_EQ(client.send("GET", "/a\r\nX: y").error().code, Code::kInvalidInput);
  EXPECT_EQ(client.send("GET", "/", {{"X", "a\r\nY: b"}}).error().code, Code::kInvalidInput);
}

}  // namespace
}  // namespace regatta::http
