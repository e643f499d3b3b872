// node_agent/internal/test_web_controller.h: the edge of a controller for tests and benchmarks: a
// TLS server that enrolls nodes, greets their WebSockets and answers their heartbeats.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_server.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/tls/certificate.h"
#include "regatta/platform/node_agent/internal/node_identity.h"
#include "regatta/platform/node_protocol/controller_message.h"
#include "regatta/platform/node_protocol/node_message.h"

namespace regatta::node_agent {

class TestWebController {
 public:
  explicit TestWebController(Seconds certificate_lifetime = Seconds{86400},
                             Seconds heartbeat = Seconds{1})
      : lifetime_(certificate_lifetime),
        heartbeat_(heartbeat),
        authority_(tls::create_authority("authority", now(), kDay).value()) {
    const tls::Identity own =
        tls::issue(authority_, {.common_name = "c", .hosts = {"127.0.0.1"}, .uris = {}}, now(),
                   kDay)
            .value();
    server_ =
        http::HttpServer::listen(
            loop_, {},
            {own.certificate + authority_.certificate, own.private_key, authority_.certificate},
            [this](std::unique_ptr<http::Exchange> exchange) { answer(std::move(exchange)); })
            .value();
    thread_ = std::thread([this] { loop_.run(); });
  }
  TestWebController(const TestWebController&) = delete;
  TestWebController& operator=(const TestWebController&) = delete;
  ~TestWebController() {
    loop_.post([this] {
      socket_.reset();
      server_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  std::string url() const { return "https://127.0.0.1:" + std::to_string(server_->port()); }
  std::string token() const {
    return "rg1." + tls::certificate_hash(authority_.certificate).value() + ".id.secret";
  }
  int enrolled() const { return enrolled_; }
  int hellos() const { return hellos_; }
  int heartbeats() const { return heartbeats_; }
  int renewals() const { return renewals_; }

  static std::int64_t now() { return static_cast<std::int64_t>(os::system_now().value); }

 private:
  static constexpr Seconds kDay{86400};

  std::string signed_for(const std::string& request, const std::string& uri) {
    return tls::sign_request(authority_, request,
                             {.common_name = "node", .hosts = {}, .uris = {uri}}, now(), lifetime_)
        .value();
  }

  void answer(std::unique_ptr<http::Exchange> exchange) {
    const http::Request& request = exchange->request();
    if (request.path == "/v1/nodes/enroll") {
      const nlohmann::json body = nlohmann::json::parse(request.body, nullptr, false);
      if (body.value("token", "") != token()) {
        exchange->respond({.status = 401, .headers = {}, .body = "{}"});
        return;
      }
      ++enrolled_;
      const nlohmann::json signed_one = {
          {"certificate", signed_for(body.value("csr", ""), node_uri(body.value("name", "")))}};
      exchange->respond({.status = 200, .headers = {}, .body = signed_one.dump()});
      return;
    }
    if (request.peer_uris.empty()) {
      exchange->respond({.status = 401, .headers = {}, .body = "{}"});
      return;
    }
    const std::string uri = request.peer_uris.front();
    auto socket = exchange->accept_web_socket();
    if (!socket) return;
    socket_ = std::move(*socket);
    socket_->on_message([this, uri](std::string_view bytes) { take(bytes, uri); });
  }

  void take(std::string_view bytes, const std::string& uri) {
    const auto message = node_protocol::decode_node_message(bytes);
    if (!message) return;
    if (const auto* hello = std::get_if<node_protocol::NodeHello>(&*message)) {
      if (node_uri(hello->facts.name) != uri) return;
      ++hellos_;
      send(node_protocol::NodeWelcome{.heartbeat = heartbeat_, .sent_ns = hello->sent_ns});
    }
    if (const auto* heartbeat = std::get_if<node_protocol::NodeHeartbeat>(&*message)) {
      ++heartbeats_;
      send(node_protocol::HeartbeatAnswer{.sent_ns = heartbeat->sent_ns});
    }
    if (const auto* request = std::get_if<node_protocol::CertificateRequest>(&*message)) {
      ++renewals_;
      send(node_protocol::RenewedCertificate{.certificate = signed_for(request->request, uri)});
    }
  }
  void send(const node_protocol::ControllerMessage& message) {
    static_cast<void>(socket_->send(node_protocol::encode(message)));
  }

  Seconds lifetime_;
  Seconds heartbeat_;
  tls::Identity authority_;
  http::EventLoop loop_;
  std::unique_ptr<http::HttpServer> server_;
  std::unique_ptr<http::WebSocket> socket_;
  std::atomic<int> enrolled_ = 0;
  std::atomic<int> hellos_ = 0;
  std::atomic<int> heartbeats_ = 0;
  std::atomic<int> renewals_ = 0;
  std::thread thread_;
};

}  // namespace regatta::node_agent
