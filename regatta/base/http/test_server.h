// http/test_server.h: servers on loopback, certificates and raw connections for the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "regatta/base/core/result.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/http/http_server.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/tls/certificate.h"

namespace regatta::http {

inline std::int64_t unix_now() {
  return static_cast<std::int64_t>(os::system_now().value);
}

// One authority for all tests of a process: keys take time.
inline const tls::Identity& test_authority() {
  static const tls::Identity only =
      tls::create_authority("test authority", unix_now(), Seconds{86400}).value();
  return only;
}

inline tls::Identity test_identity(const std::string& uri) {
  return tls::issue(test_authority(), {.common_name = "client", .uris = {uri}}, unix_now(),
                    Seconds{86400})
      .value();
}

inline ServerIdentity test_server_identity() {
  const tls::Identity identity =
      tls::issue(test_authority(), {.common_name = "server", .hosts = {"127.0.0.1"}}, unix_now(),
                 Seconds{86400})
          .value();
  return {identity.certificate, identity.private_key, test_authority().certificate};
}

// A server whose loop runs in a thread of its own.
class TestServer {
 public:
  TestServer(const ServerOptions& options, const ServerIdentity& identity,
             HttpServer::Handler handler)
      : server_(HttpServer::listen(loop_, options, identity, std::move(handler)).value()),
        is_tls_(!identity.certificate_chain.empty()),
        thread_([this] { loop_.run(); }) {}
  ~TestServer() {
    run([this] { server_.reset(); });
    loop_.stop();
    thread_.join();
  }

  EventLoop& loop() { return loop_; }
  HttpServer& server() { return *server_; }
  std::uint16_t port() const { return port_; }
  ClientOptions client_options() const {
    ClientOptions options;
    options.url = (is_tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
    if (is_tls_) options.ca = test_authority().certificate;
    return options;
  }
  HttpClient client() const { return HttpClient::create(client_options()).value(); }

  // Runs `work` in the loop's thread and waits for it.
  template <typename Work>
  std::invoke_result_t<Work> run(Work work) {
    std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
    auto result = task.get_future();
    loop_.post([&task] { task(); });
    return result.get();
  }
  std::size_t connection_count() {
    return run([this] { return server_->connection_count(); });
  }

 private:
  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  bool is_tls_;
  std::uint16_t port_ = server_->port();
  std::thread thread_;
};

// A client that sends what a test wants.
class RawConnection {
 public:
  explicit RawConnection(std::uint16_t port)
      : fd_(os::connect_tcp({"127.0.0.1", std::to_string(port)}, Seconds{5}).value()) {}

  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void end() const { ::shutdown(fd_.get(), SHUT_WR); }
  // All bytes until `text` has come, the end, or 5 s.
  std::string read_until(std::string_view text) {
    const double deadline_s = os::monotonic_now().value + 5;
    while (received_.find(text) == std::string::npos && !is_over_) {
      pollfd one{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      const double left_s = deadline_s - os::monotonic_now().value;
      if (left_s <= 0 || ::poll(&one, 1, static_cast<int>(left_s * 1000) + 1) <= 0) break;
      char bytes[4096];
      const ssize_t came = ::recv(fd_.get(), bytes, sizeof bytes, 0);
      is_over_ = came <= 0;
      if (came > 0) received_.append(bytes, static_cast<std::size_t>(came));
    }
    const std::size_t found = received_.find(text);
    const std::size_t end = found == std::string::npos ? received_.size() : found + text.size();
    std::string result = received_.substr(0, end);
    received_.erase(0, end);
    return result;
  }
  std::string read_to_end() { return read_until(std::string_view("\0\0no text\0", 10)); }
  // The server ended the connection.
  bool is_over() const { return is_over_; }
  int fd() const { return fd_.get(); }

 private:
  os::UniqueFd fd_;
  std::string received_;
  bool is_over_ = false;
};

}  // namespace regatta::http
