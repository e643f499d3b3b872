#include "regatta/base/http/http_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

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

}  // namespace

struct HttpClient::Impl {
  ClientOptions options;
  ServerUrl url;
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

  Result<Response> exchange(const std::string& method, const std::string& request,
                            const ResponseParser::Piece& piece) {
    if (was_kept && is_stale()) drop();
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
      Status status = send_all(request);
      if (status) status = read_response(parser);
      if (status) {
        if (fd_is_done || !parser.keeps_connection())
          drop();
        else
          was_kept = true;
        return parser.take();
      }
      const bool has_begun = parser.has_begun();
      drop();
      if (!is_retry_allowed || has_begun || status.error().code != Code::kUnavailable)
        return status.error();
    }
  }
};

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::create(ClientOptions options) {
  auto impl = std::make_unique<Impl>();
  REGATTA_TRY(url, parse_server_url(options.url));
  impl->url = std::move(url);
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
  std::string request;
  append_request(request, method, target, request_headers(impl_->url, headers), body);
  return impl_->exchange(method, request, {});
}

Result<Response> HttpClient::stream(const std::string& method, const std::string& target,
                                    const Headers& headers,
                                    const std::function<bool(std::string_view)>& piece) {
  REGATTA_TRY_DO(check_request(method, target, headers));
  std::string request;
  append_request(request, method, target, request_headers(impl_->url, headers), {});
  return impl_->exchange(method, request, piece);
}

}  // namespace regatta::http
