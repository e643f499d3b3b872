#include "regatta/base/http/web_socket_client.h"

#include <algorithm>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "regatta/base/http/internal/async_socket.h"
#include "regatta/base/http/internal/event_loop_impl.h"
#include "regatta/base/http/internal/header_text.h"
#include "regatta/base/http/internal/message_parser.h"
#include "regatta/base/http/internal/url.h"
#include "regatta/base/http/internal/web_socket_frames.h"
#include "regatta/base/http/internal/web_socket_session.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"

namespace regatta::http {
namespace {

using boost::asio::ip::tcp;
using SystemError = boost::system::error_code;
using Done = std::function<void(Result<std::unique_ptr<WebSocket>>)>;

constexpr Seconds kTick{1};

// A connection from its beginning to the end of its WebSocket.
class WebSocketConnection final : public AsyncSocket {
 public:
  WebSocketConnection(EventLoop& loop, ClientOptions options, ServerUrl url, Done done)
      : AsyncSocket(loop, tcp::socket(loop.impl().context)),
        resolver_(loop.impl().context),
        options_(std::move(options)),
        url_(std::move(url)),
        done_(std::move(done)),
        begin_s_(os::monotonic_now().value) {}

  void begin(std::optional<tls::TlsContext> context, const std::string& target,
             const Headers& headers) {
    context_ = std::move(context);
    target_ = target;
    headers_ = headers;
    Headers all = request_headers(url_, headers);
    all.emplace_back("Connection", "Upgrade");
    all.emplace_back("Upgrade", "websocket");
    all.emplace_back("Sec-WebSocket-Version", "13");
    all.emplace_back("Sec-WebSocket-Key", key_);
    append_request(request_, "GET", target, all, {});
    auto self = std::static_pointer_cast<WebSocketConnection>(shared_from_this());
    resolver_.async_resolve(
        url_.end.host, url_.end.port,
        [self](const SystemError& error, const tcp::resolver::results_type& ends) {
          if (self->done_ == nullptr) return;
          if (error)
            self->fail_setup(Code::kUnavailable, "the host has no address: " + error.message());
          else
            self->connect(ends);
        });
    check_later();
  }

 private:
  void connect(const tcp::resolver::results_type& ends) {
    auto self = std::static_pointer_cast<WebSocketConnection>(shared_from_this());
    boost::asio::async_connect(socket(), ends,
                               [self](const SystemError& error, const tcp::endpoint&) {
                                 if (self->done_ == nullptr) return;
                                 self->take_connection(error);
                               });
  }

  void take_connection(const SystemError& error) {
    if (error) return fail_setup(Code::kUnavailable, "connecting failed: " + error.message());
    SystemError failure;
    socket().non_blocking(true, failure);
    os::enable_keepalive(socket().native_handle());
    if (!context_) return start(std::nullopt);
    auto stream = tls::TlsStream::connect(*context_, socket().native_handle(), url_.end.host);
    if (!stream) return fail_setup(stream.error().code, stream.error().message);
    start(std::move(*stream));
  }

  void on_open() override { write(std::exchange(request_, {})); }

  void on_input(std::string_view bytes) override {
    if (is_closing()) return;
    if (session_ != nullptr) {
      const auto session = session_;
      return session->on_input(bytes);
    }
    if (done_ == nullptr) return;
    input_ += bytes;
    input_.erase(0, parser_.put(input_));
    if (parser_.state() == ParseState::kNeedsMore) return;
    take_response();
  }

  void take_response() {
    if (parser_.state() == ParseState::kFailed)
      return fail_setup(Code::kUnavailable, std::string(parser_.problem()));
    const Response response = parser_.take();
    if (response.status == 307) return follow(response);
    const bool is_accepted =
        response.status == 101 &&
        find_header(response.headers, "Sec-WebSocket-Accept") == web_socket_accept(key_);
    if (!is_accepted)
      return fail_setup(Code::kUnsupported,
                        "the server refuses a WebSocket: " + std::to_string(response.status) + " " +
                            std::string(reason_phrase(response.status)));
    session_ = std::make_shared<WebSocketSession>(
        *this, WebSocketRole::kClient, WebSocketLimits{.silence_max = options_.response_limit});
    const auto session = session_;
    const auto done = std::exchange(done_, nullptr);
    done(session->handle());
    const std::string rest = std::exchange(input_, {});
    if (!rest.empty() && !is_closed()) session->on_input(rest);
  }

  // The server names another one: the same begins there, in what is left of the time.
  void follow(const Response& response) {
    const auto server = redirected_server(response, target_, url_.is_tls);
    if (!server) return fail_setup(Code::kUnsupported, server.error().message);
    ClientOptions options = options_;
    options.url = (server->is_tls ? "https://" : "http://") + server->authority;
    options.connect_limit = options_.connect_limit - (os::monotonic_now() - Seconds{begin_s_});
    const Done done = std::exchange(done_, nullptr);
    close();
    if (options.connect_limit.value > 0) {
      connect_web_socket(loop(), options, target_, headers_, done);
    } else {
      done(Error{Code::kTimeout, options_.url + ": it sends to other servers again and again"});
    }
  }

  void on_closed() override {
    resolver_.cancel();
    if (const auto session = std::exchange(session_, nullptr)) return session->on_socket_closed();
    if (done_ == nullptr) return;
    fail_setup(is_untrusted() ? Code::kInvalidInput : Code::kUnavailable,
               problem().empty() ? "the connection ended before the WebSocket was open"
                                 : "the connection failed: " + problem());
  }

  void fail_setup(Code code, const std::string& what) {
    const auto done = std::exchange(done_, nullptr);
    if (done == nullptr) return;
    close();
    done(Error{code, options_.url + ": " + what});
  }

  void check_later() {
    const double limit_s =
        done_ == nullptr ? kTick.value : std::min(kTick.value, options_.connect_limit.value);
    loop().after({limit_s}, [weak = weak_from_this()] {
      const auto held = weak.lock();
      if (held == nullptr) return;
      auto& self = static_cast<WebSocketConnection&>(*held);
      if (self.is_closed()) return;
      self.check();
      if (!self.is_closed()) self.check_later();
    });
  }

  void check() {
    const Seconds now = os::monotonic_now();
    if (done_ != nullptr) {
      if (now.value - begin_s_ >= options_.connect_limit.value)
        fail_setup(Code::kTimeout, "no WebSocket within " + format_seconds(options_.connect_limit));
      return;
    }
    check_progress(now, options_.response_limit);
    if (const auto session = session_) session->check_silence(now);
  }

  tcp::resolver resolver_;
  const ClientOptions options_;
  const ServerUrl url_;
  Done done_;  // null when it was called
  const double begin_s_;
  const std::string key_ = new_web_socket_key();
  std::optional<tls::TlsContext> context_;
  std::string target_;
  Headers headers_;
  std::string request_;
  std::string input_;
  ResponseParser parser_{false, {}};
  std::shared_ptr<WebSocketSession> session_;
};

}  // namespace

void connect_web_socket(EventLoop& loop, const ClientOptions& options, const std::string& target,
                        const Headers& headers, Done done) {
  const auto fail = [&loop, &done](const Error& error) {
    loop.post([done = std::move(done), error] { done(error); });
  };
  auto url = parse_server_url(options.url);
  if (!url) return fail(url.error());
  if (const Status status = check_request("GET", target, headers); !status)
    return fail(status.error());
  std::optional<tls::TlsContext> context;
  if (url->is_tls) {
    auto made = client_context(options);
    if (!made) return fail(made.error());
    context = std::move(*made);
  }
  std::make_shared<WebSocketConnection>(loop, options, std::move(*url), std::move(done))
      ->begin(std::move(context), target, headers);
}

}  // namespace regatta::http
