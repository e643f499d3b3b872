#include "regatta/base/http/web_socket_client.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/http/test_server.h"

namespace regatta::http {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// Both ends in one loop, which the test runs.
class WebSocketTest : public ::testing::Test {
 protected:
  void listen(const ServerOptions& options, const ServerIdentity& identity) {
    server_ =
        HttpServer::listen(loop_, options, identity, [this](std::unique_ptr<Exchange> e) {
          auto accepted = e->accept_web_socket();
          if (!accepted) return e->respond({.status = 426});
          at_server_ = std::move(*accepted);
          at_server_->on_message([this](std::string_view message) { at_server_->send(message); });
          at_server_->on_closed([this] { is_server_closed_ = true; });
        }).value();
    options_.url =
        (identity.certificate_chain.empty() ? "http://127.0.0.1:" : "https://127.0.0.1:") +
        std::to_string(server_->port());
    if (!identity.certificate_chain.empty()) options_.ca = test_authority().certificate;
  }
  void connect() {
    connect_web_socket(loop_, options_, "/agents", {}, [this](auto result) {
      if (!result) {
        error_ = result.error();
        return;
      }
      at_client_ = std::move(*result);
      at_client_->on_message([this](std::string_view m) { messages_.emplace_back(m); });
      at_client_->on_closed([this] { is_client_closed_ = true; });
    });
  }
  bool run_until(const std::function<bool()>& is_reached) {
    const double deadline_s = os::monotonic_now().value + 5;
    while (!is_reached() && os::monotonic_now().value < deadline_s)
      if (!loop_.poll()) os::sleep_for(Seconds{0.001});
    return is_reached();
  }

  EventLoop loop_;
  ClientOptions options_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<WebSocket> at_server_;
  std::unique_ptr<WebSocket> at_client_;
  std::vector<std::string> messages_;
  std::optional<Error> error_;
  bool is_server_closed_ = false;
  bool is_client_closed_ = false;
};

TEST_F(WebSocketTest, CarriesMessagesOfAnySizeBothWays) {
  listen({}, test_server_identity());
  connect();
  ASSERT_TRUE(run_until([&] { return at_client_ != nullptr; })) << error_.value_or(Error{}).message;
  const std::vector<std::string> sent = {"", "a", std::string(125, 'b'), std::string(126, 'c'),
                                         std::string(70'000, 'd')};
  for (const std::string& message : sent)
    EXPECT_TRUE(at_client_->send(message));
  ASSERT_TRUE(run_until([&] { return messages_.size() == sent.size(); }));
  EXPECT_EQ(messages_, sent);
}

TEST_F(WebSocketTest, TellsEachEndThatTheOtherHasClosed) {
  listen({}, {});
  connect();
  ASSERT_TRUE(run_until([&] { return at_client_ != nullptr; }));
  at_client_.reset();
  EXPECT_TRUE(run_until([&] { return is_server_closed_; }));
  EXPECT_FALSE(at_server_->send("x"));
  at_server_.reset();

  is_server_closed_ = false;
  connect();
  ASSERT_TRUE(run_until([&] { return at_client_ != nullptr; }));
  at_server_.reset();
  EXPECT_TRUE(run_until([&] { return is_client_closed_; }));
}

TEST_F(WebSocketTest, ClosesOneThatSendsAMessageThatIsTooLarge) {
  listen({.message_bytes_max = 1000}, {});
  connect();
  ASSERT_TRUE(run_until([&] { return at_client_ != nullptr; }));
  at_client_->send(std::string(1001, 'x'));
  EXPECT_TRUE(run_until([&] { return is_server_closed_ && is_client_closed_; }));
}

TEST_F(WebSocketTest, PingsASilentPeerAndKeepsItWhileItAnswers) {
  listen({.idle_limit{0.08}}, {});
  connect();
  ASSERT_TRUE(run_until([&] { return at_client_ != nullptr; }));
  const double until_s = os::monotonic_now().value + 0.3;
  EXPECT_TRUE(run_until([&] { return os::monotonic_now().value > until_s; }));
  EXPECT_FALSE(is_server_closed_);
}

TEST_F(WebSocketTest, ClosesASilentPeerThatAnswersNoPing) {
  listen({.idle_limit{0.08}}, {});
  RawConnection raw(server_->port());
  raw.send(
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  EXPECT_TRUE(run_until([&] { return is_server_closed_; }));
  const std::string answer = raw.read_to_end();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 101 "));
  EXPECT_NE(answer.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), std::string::npos);
  EXPECT_TRUE(raw.is_over());
}

TEST_F(WebSocketTest, SaysWhenTheServerRefusesOrIsNotThereOrIsNotTrusted) {
  server_ = HttpServer::listen(loop_, {}, {}, [](std::unique_ptr<Exchange> e) {
              e->respond({.status = 403});
            }).value();
  options_.url = "http://127.0.0.1:" + std::to_string(server_->port());
  connect();
  ASSERT_TRUE(run_until([&] { return error_.has_value(); }));
  EXPECT_EQ(error_->code, Code::kUnsupported);
  EXPECT_NE(error_->message.find("403"), std::string::npos);

  error_.reset();
  options_.url = "http://127.0.0.1:1";
  connect();
  ASSERT_TRUE(run_until([&] { return error_.has_value(); }));
  EXPECT_EQ(error_->code, Code::kUnavailable);

  error_.reset();
  listen({}, test_server_identity());
  options_.ca = tls::create_authority("other", unix_now(), Seconds{86400}).value().certificate;
  connect();
  ASSERT_TRUE(run_until([&] { return error_.has_value(); }));
  EXPECT_EQ(error_->code, Code::kInvalidInput);
}

TEST_F(WebSocketTest, EndsWithATimeoutWhenTheServerIsSilent) {
  const os::UniqueFd listener = os::listen_tcp({"127.0.0.1", "0"}).value();
  options_.url = "http://127.0.0.1:" + os::local_endpoint(listener.get()).port;
  options_.connect_limit = {0.05};
  connect();
  ASSERT_TRUE(run_until([&] { return error_.has_value(); }));
  EXPECT_EQ(error_->code, Code::kTimeout);
}

TEST_F(WebSocketTest, FollowsAServerThatNamesAnotherOne) {
  listen({}, test_server_identity());
  const std::string leader = options_.url;
  const auto follower =
      HttpServer::listen(loop_, {}, test_server_identity(), [leader](std::unique_ptr<Exchange> e) {
        e->respond({.status = 307, .headers = {{"Location", leader + "/agents"}}});
      }).value();
  options_.url = "https://127.0.0.1:" + std::to_string(follower->port());
  connect();
  ASSERT_TRUE(run_until([this] { return at_client_ != nullptr; }));
  at_client_->send("hello");
  EXPECT_TRUE(run_until([this] { return !messages_.empty(); }));
}

}  // namespace
}  // namespace regatta::http
