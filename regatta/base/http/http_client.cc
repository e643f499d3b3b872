#include "regatta/base/http/http_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "regatta/base/http/internal/header_text.h"
#include "regatta/base/http/internal/message_parser.h"
#include "regatta/base/http/internal/url.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/base/tls/tls_stream.h"

namespace regatta::http {
namespace {

using tls::StreamProgress;

constexpr std::size_t kResponseBytesMax = 256 << 20;
constexpr int kRedirectsMax = 4;
constexpr Seconds kNextServer{0.1};  // before the next one is asked

}  // namespace

struct HttpClient::Impl {
  ClientOptions options;
  std::vector<ServerUrl> servers;
  std::size_t server = 0;
  ServerUrl url;  // of the connection: one of them, or where one has sent to
  std::optional<tls::TlsContext> context;
  os::UniqueFd fd;
  std::optional<tls::TlsStream> stream;
  bool was_kept = false;  // the connection has served a request before

  Error failed(Code code, const std::string& what) const {
    return Error{code, options.url + ": " + what};
  }
  void drop() {
    stream.reset();
    fd.reset();
    was_kept = false;
  }

  // After a failure: the next of several.
  void use_next_server() {
    drop();
    server = (server + 1) % servers.size();
    url = servers[server];
  }

  // Waits until the socket is ready; `deadline` 0: for ever.
  Status wait(StreamProgress progress, double deadline_s) const {
    for (;;) {
      int limit_ms = -1;
      if (deadline_s > 0) {
        const double left_s = deadline_s - os::monotonic_now().value;
        if (left_s <= 0) return failed(Code::kTimeout, "no answer in time");
        limit_ms = static_cast<int>(std::min(left_s * 1000 + 1, 1e9));
      }
      pollfd one{
          .fd = fd.get(),
          .events = static_cast<short>(progress == StreamProgress::kWantWrite ? POLLOUT : POLLIN),
          .revents = 0};
      const int ready = ::poll(&one, 1, limit_ms);
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return os::errno_error(options.url);
    }
  }
  double deadline_of(Seconds limit) const {
    return limit.value > 0 ? os::monotonic_now().value + limit.value : 0;
  }

  Error stream_error(const std::string& what) const {
    const bool is_untrusted = stream && stream->is_untrusted();
    const std::string reason = stream ? stream->problem() : os::errno_text();
    return failed(is_untrusted ? Code::kInvalidInput : Code::kUnavailable,
                  (is_untrusted ? "its certificate is not trusted: " : what + ": ") + reason);
  }

  Status connect() {
    const double deadline_s = deadline_of(options.connect_limit);
    auto connected = os::connect_tcp(url.end, options.connect_limit);
    if (!connected) return connected.error();
    fd = std::move(*connected);
    const int flags = ::fcntl(fd.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0)
      return os::errno_error(options.url);
    if (!context) return {};
    REGATTA_TRY(made, tls::TlsStream::connect(*context, fd.get(), url.end.host));
    stream = std::move(made);
    for (;;) {
      const StreamProgress progress = stream->handshake();
      if (progress == StreamProgress::kDone) return {};
      if (progress != StreamProgress::kWantRead && progress != StreamProgress::kWantWrite)
        return stream_error("the TLS handshake failed");
      REGATTA_TRY_DO(wait(progress, deadline_s));
    }
  }

  // Whether a kept connection has ended, or has bytes that answer nothing.
  bool is_stale() const {
    pollfd one{.fd = fd.get(), .events = POLLIN, .revents = 0};
    return !fd || ::poll(&one, 1, 0) != 0 || (stream && stream->has_pending());
  }

  tls::StreamTransfer write_once(std::string_view bytes) {
    if (stream) return stream->write(bytes);
    const ssize_t sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return {StreamProgress::kDone, static_cast<std::size_t>(sent)};
    return {
        errno == EAGAIN || errno == EINTR ? StreamProgress::kWantWrite : StreamProgress::kFailed,
        0};
  }
  tls::StreamTransfer read_once(char* into, std::size_t count) {
    if (stream) return stream->read(into, count);
    const ssize_t came = ::recv(fd.get(), into, count, MSG_DONTWAIT);
    if (came > 0) return {StreamProgress::kDone, static_cast<std::size_t>(came)};
    if (came == 0) return {StreamProgress::kEnded, 0};
    return {errno == EAGAIN || errno == EINTR ? StreamProgress::kWantRead : StreamProgress::kFailed,
            0};
  }

  // A server that refuses a request may answer before it has read all of it, so an error of sending
  // leaves the answer to be read.
  Status send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto [progress, count] = write_once(bytes);
      switch (progress) {
        case StreamProgress::kDone:
          bytes.remove_prefix(count);
          break;
        case StreamProgress::kWantRead:
        case StreamProgress::kWantWrite:
          REGATTA_TRY_DO(wait(progress, deadline_of(options.response_limit)));
          break;
        default:
          return {};
      }
    }
    return {};
  }

  // Reads until `parser` is over; bytes behind the response end the connection's use.
  Status read_response(ResponseParser& parser) {
    std::string input;
    std::array<char, 64 << 10> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    bool is_ended = false;
    while (parser.state() == ParseState::kNeedsMore) {
      const auto [progress, count] = read_once(piece.data(), piece.size());
      switch (progress) {
        case StreamProgress::kDone:
          input.append(piece.data(), count);
          input.erase(0, parser.put(input));
          break;
        case StreamProgress::kWantRead:
        case StreamProgress::kWantWrite:
          REGATTA_TRY_DO(wait(progress, deadline_of(options.response_limit)));
          break;
        case StreamProgress::kEnded:
          is_ended = true;
          parser.put_end();
          break;
        case StreamProgress::kFailed:
          return stream_error("the connection failed");
      }
    }
    if (parser.is_ended_by_owner() || is_ended || !input.empty()) {
      was_kept = false;
      fd_is_done = true;
    }
    if (parser.state() == ParseState::kFailed && !parser.is_ended_by_owner())
      return failed(Code::kUnavailable, std::string(parser.problem()));
    return {};
  }
  bool fd_is_done = false;
  bool was_sent = false;   // a part of the latest request was
  bool has_begun = false;  // its answer has

  Result<Response> exchange(const std::string& method, const std::string& request,
                            const ResponseParser::Piece& piece) {
    if (was_kept && is_stale()) drop();
    was_sent = has_begun = false;
    for (;;) {
      const bool is_retry_allowed = was_kept && method == "GET";
      if (!fd)
        if (auto status = connect(); !status) {
          drop();
          return status.error();
        }
      ResponseParser parser(method == "HEAD",
                            {.header_bytes_max = 64 << 10, .body_bytes_max = kResponseBytesMax},
                            piece);
      fd_is_done = false;
      was_sent = true;
      Status status = send_all(request);
      if (status) status = read_response(parser);
      if (status) {
        if (fd_is_done || !parser.keeps_connection())
          drop();
        else
          was_kept = true;
        return parser.take();
      }
      has_begun = parser.has_begun();
      drop();
      if (!is_retry_allowed || has_begun || status.error().code != Code::kUnavailable)
        return status.error();
    }
  }

  Result<Response> ask(const std::string& method, const std::string& target, const Headers& headers,
                       std::string_view body, const ResponseParser::Piece& piece) {
    const bool may_repeat = method == "GET" || !find_header(headers, "Idempotency-Key").empty();
    const Seconds end = os::monotonic_now() + options.connect_limit;
    const auto may_try_next = [&] {
      const bool has_others = servers.size() > 1 || url.authority != servers[server].authority;
      return has_others && os::monotonic_now() < end;
    };
    for (int redirects = 0;;) {
      std::string request;
      append_request(request, method, target, request_headers(url, headers), body);
      Result<Response> response = exchange(method, request, piece);
      if (!response) {
        const bool is_safe = !was_sent || (may_repeat && !has_begun);
        if (!is_safe || response.error().code == Code::kInvalidInput || !may_try_next())
          return response;
      } else if (response->status == 307 && redirects < kRedirectsMax) {
        REGATTA_TRY(other, redirected_server(*response, target, url.is_tls));
        drop();
        url = std::move(other);
        ++redirects;
        continue;
      } else if ((response->status != 503 && response->status != 307) || !may_try_next()) {
        return response;
      }
      redirects = 0;
      os::sleep_for(kNextServer);
      use_next_server();
    }
  }
};

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::create(ClientOptions options) {
  auto impl = std::make_unique<Impl>();
  REGATTA_TRY(servers, parse_server_urls(options.url));
  impl->servers = std::move(servers);
  impl->url = impl->servers.front();
  if (impl->url.is_tls) {
    REGATTA_TRY(context, client_context(options));
    impl->context = std::move(context);
  }
  impl->options = std::move(options);
  return HttpClient(std::move(impl));
}

Result<Response> HttpClient::send(const std::string& method, const std::string& target,
                                  const Headers& headers, std::string_view body) {
  REGATTA_TRY_DO(check_request(method, target, headers));
  return impl_->ask(method, target, headers, body, {});
}

Result<Response> HttpClient::stream(const std::string& method, const std::string& target,
                                    const Headers& headers,
                                    const std::function<bool(std::string_view)>& piece) {
  REGATTA_TRY_DO(check_request(method, target, headers));
  return impl_->ask(method, target, headers, {}, piece);
}

}  // namespace regatta::http
