#include "regatta/base/http/http_server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "regatta/base/http/internal/event_loop_impl.h"
#include "regatta/base/http/internal/http_connection.h"
#include "regatta/base/http/internal/server_core.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::http {
namespace {

using boost::asio::ip::tcp;
using SystemError = boost::system::error_code;

constexpr int kBacklog = 4096;
constexpr int kAcceptsPerTurn = 16;
// Connections beyond the bound that are told so; further ones are closed at once.
constexpr std::size_t kRefusedMax = 64;
// How long no connection is accepted when no descriptor is left.
constexpr Seconds kAcceptPause{0.1};

class AsyncHttpServer final : public HttpServer {
 public:
  AsyncHttpServer(EventLoop& loop, std::shared_ptr<ServerCore> core, tcp::acceptor acceptor)
      : loop_(loop), core_(std::move(core)), acceptor_(std::move(acceptor)) {
    const ServerOptions& options = core_->options;
    const double shortest =
        std::min({options.request_limit.value, options.idle_limit.value, options.send_limit.value});
    tick_ = Seconds{std::clamp(shortest / 4, 0.01, 1.0)};
    SystemError ignored;
    port_ = acceptor_.local_endpoint(ignored).port();
    accept_more();
    check_later();
  }
  ~AsyncHttpServer() override {
    *alive_ = false;
    core_->handler = nullptr;
    SystemError ignored;
    acceptor_.close(ignored);
    for_each_connection([](HttpConnection& connection) { connection.close(); });
  }

  std::uint16_t port() const override { return port_; }
  std::size_t connection_count() const override { return core_->connections.size(); }
  Status set_identity(const ServerIdentity& identity) override {
    REGATTA_TRY(context, tls::TlsContext::server({identity.certificate_chain, identity.private_key},
                                                 identity.client_ca));
    core_->tls = std::move(context);
    return {};
  }
  void close_listener() override {
    SystemError ignored;
    acceptor_.close(ignored);
    core_->is_closing = true;
    for_each_connection([](HttpConnection& connection) { connection.close_if_idle(); });
  }

 private:
  void accept_more() {
    acceptor_.async_wait(tcp::acceptor::wait_read,
                         [this, alive = alive_](const SystemError& error) {
                           if (error || !*alive) return;
                           accept_some();
                         });
  }

  void accept_some() {
    for (int count = 0; count < kAcceptsPerTurn; ++count) {
      tcp::socket socket(loop_.impl().context);
      tcp::endpoint peer;
      SystemError error;
      acceptor_.accept(socket, peer, error);
      if (error == boost::asio::error::would_block) break;
      if (error == boost::system::errc::too_many_files_open ||
          error == boost::system::errc::too_many_files_open_in_system) {
        loop_.after(kAcceptPause, [this, alive = alive_] {
          if (*alive && acceptor_.is_open()) accept_more();
        });
        return;
      }
      if (!error) begin_connection(std::move(socket), peer.address().to_string());
    }
    accept_more();
  }

  void begin_connection(tcp::socket socket, std::string address) {
    SystemError error;
    socket.non_blocking(true, error);
    if (error) return;
    os::enable_keepalive(socket.native_handle());
    const ServerOptions& options = core_->options;
    const auto found = core_->connections_by_address.find(address);
    const std::size_t of_address = found == core_->connections_by_address.end() ? 0 : found->second;
    const bool is_refused = core_->connections.size() >= options.connections_max ||
                            of_address >= options.connections_per_address_max;
    if (is_refused && (core_->connections.size() >= options.connections_max + kRefusedMax ||
                       of_address >= options.connections_per_address_max + kRefusedMax))
      return;
    std::make_shared<HttpConnection>(core_, std::move(socket), std::move(address), is_refused)
        ->begin();
  }

  void check_later() {
    loop_.after(tick_, [this, alive = alive_] {
      if (!*alive) return;
      const Seconds now = os::monotonic_now();
      for_each_connection([now](HttpConnection& connection) { connection.check_limits(now); });
      if (*alive) check_later();
    });
  }

  // A connection may end others, by the owner's handlers.
  template <typename Action>
  void for_each_connection(Action action) {
    const auto core = core_;
    const std::vector<HttpConnection*> all(core->connections.begin(), core->connections.end());
    for (HttpConnection* const one : all) {
      if (!core->connections.contains(one)) continue;
      const auto held = one->shared_from_this();
      action(*one);
    }
  }

  EventLoop& loop_;
  std::shared_ptr<ServerCore> core_;
  tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  Seconds tick_{1};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

Error listen_error(const ServerOptions& options, const SystemError& error) {
  const std::string what =
      "listening at " + os::to_string({options.address, std::to_string(options.port)});
  const bool is_unusable = error == boost::asio::error::address_family_not_supported ||
                           error == boost::system::errc::address_not_available;
  return is_unusable ? Error{Code::kInvalidInput, what + ": " + os::errno_text(error.value())}
         : error == boost::asio::error::address_in_use
             ? Error{Code::kConflict, what + ": another program does; choose another port"}
             : os::errno_error(what, error.value());
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(EventLoop& loop,
                                                       const ServerOptions& options,
                                                       const ServerIdentity& identity,
                                                       Handler handler) {
  auto core = std::make_shared<ServerCore>(loop, options, std::move(handler));
  SystemError error;
  const auto address = boost::asio::ip::make_address(options.address, error);
  if (error)
    return Error{Code::kInvalidInput,
                 "'" + options.address + "' is no IP address to listen at, such as 0.0.0.0"};
  if (!identity.certificate_chain.empty()) {
    REGATTA_TRY(context, tls::TlsContext::server({identity.certificate_chain, identity.private_key},
                                                 identity.client_ca));
    core->tls = std::move(context);
  } else if (!address.is_loopback()) {
    return Error{Code::kInvalidInput,
                 "listening at " + options.address +
                     " needs a certificate; without one only loopback is served"};
  }
  tcp::acceptor acceptor(loop.impl().context);
  const tcp::endpoint endpoint(address, options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error) return listen_error(options, error);
  return std::unique_ptr<HttpServer>(
      std::make_unique<AsyncHttpServer>(loop, std::move(core), std::move(acceptor)));
}

}  // namespace regatta::http
