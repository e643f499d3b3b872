#include "regatta/base/http/internal/http_connection.h"

#include <algorithm>
#include <utility>

#include "regatta/base/http/internal/header_text.h"
#include "regatta/base/http/internal/server_exchange.h"
#include "regatta/base/http/internal/web_socket_frames.h"
#include "regatta/base/os/clock.h"

namespace regatta::http {
namespace {

// One connection takes so many at once; the next ones wait for the turns of other connections.
constexpr int kRequestsPerTurn = 16;

bool has_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<ServerCore> core,
                               boost::asio::ip::tcp::socket socket, std::string remote_address,
                               bool is_refused)
    : AsyncSocket(core->loop, std::move(socket)),
      core_(std::move(core)),
      remote_address_(std::move(remote_address)),
      since_s_(os::monotonic_now().value),
      is_refused_(is_refused) {
  core_->connections.insert(this);
  ++core_->connections_by_address[remote_address_];
}

HttpConnection::~HttpConnection() {
  drop_parser();
  core_->connections.erase(this);
}

void HttpConnection::begin() {
  std::optional<tls::TlsStream> stream;
  if (core_->tls) {
    auto made = tls::TlsStream::accept(*core_->tls, socket().native_handle());
    if (!made) return close();
    stream = std::move(*made);
  }
  start(std::move(stream));
}

void HttpConnection::on_open() {
  if (stream() != nullptr) peer_uris_ = stream()->peer_uris();
  since_s_ = os::monotonic_now().value;
}

void HttpConnection::on_closed() {
  core_->connections.erase(this);
  const auto found = core_->connections_by_address.find(remote_address_);
  if (is_counted_ && found != core_->connections_by_address.end() && --found->second == 0)
    core_->connections_by_address.erase(found);
  is_counted_ = false;
  drop_parser();
  input_ = std::string();
  if (const auto session = std::exchange(session_, nullptr)) session->on_socket_closed();
  const Stage last = std::exchange(stage_, Stage::kEnded);
  if (last == Stage::kStream) report_stream_closed();
}

void HttpConnection::on_end() {
  has_peer_ended_ = true;
  // A response that is due may still be read: the peer has ended one direction alone.
  if (stage_ == Stage::kExchange) return;
  if (stage_ == Stage::kStream || stage_ == Stage::kWebSocket || queued_bytes() == 0)
    close();
  else
    close_after_sending();
}

void HttpConnection::on_sent() {
  if (!input_.empty() && !is_in_handler_) go_on_later();
}

void HttpConnection::on_input(std::string_view bytes) {
  if (is_closing() || stage_ == Stage::kStream || stage_ == Stage::kEnded) return;
  if (stage_ == Stage::kWebSocket) {
    const auto session = session_;
    session->on_input(bytes);
  } else if (input_.empty()) {
    const std::size_t taken = take_requests(bytes);
    // Without a copy where a read holds whole requests.
    if (taken < bytes.size() && !is_closed()) input_ = bytes.substr(taken);
  } else {
    input_ += bytes;
    go_on();
  }
}

// Takes requests from what came before, where it is their turn.
void HttpConnection::go_on() {
  if (stage_ != Stage::kIdle && stage_ != Stage::kRequest) return;
  std::string bytes = std::exchange(input_, {});
  const std::size_t taken = take_requests(bytes);
  if (is_closed()) return;
  if (taken < bytes.size()) {
    bytes.erase(0, taken);
    input_ = std::move(bytes);
  }
}

// The same, later; then more input.
void HttpConnection::go_on_later() {
  post([this] {
    go_on();
    if (is_closed() || is_closing()) return;
    if (stage_ == Stage::kIdle || stage_ == Stage::kRequest) resume_reading();
  });
}

std::size_t HttpConnection::take_requests(std::string_view bytes) {
  const std::size_t size = bytes.size();
  const auto self = shared_from_this();
  for (int count = 0; !bytes.empty() && !is_closed() && !is_closing(); ++count) {
    if (stage_ == Stage::kWebSocket) {
      // The first frames came with the request.
      const auto session = session_;
      session->on_input(bytes);
      return size;
    }
    if (stage_ == Stage::kStream) return size;
    if (stage_ == Stage::kExchange) {
      pause_reading();
      break;
    }
    if (queued_bytes() > core_->options.queued_bytes_max) {
      pause_reading();  // until on_sent()
      break;
    }
    if (count == kRequestsPerTurn) {
      pause_reading();
      go_on_later();
      break;
    }
    if (!take_request(bytes)) break;
  }
  if (stage_ == Stage::kExchange) pause_reading();
  return size - bytes.size();
}

// Whether a request was complete, and handed over or refused.
bool HttpConnection::take_request(std::string_view& bytes) {
  if (parser_ == nullptr) {
    // Empty lines before a request are allowed (RFC 9112, section 2.2).
    while (bytes.starts_with('\r') || bytes.starts_with('\n'))
      bytes.remove_prefix(1);
    if (bytes.empty()) return false;
    parser_ = std::make_unique<RequestParser>(
        ParserLimits{core_->options.header_bytes_max, core_->options.body_bytes_max});
    stage_ = Stage::kRequest;
    since_s_ = os::monotonic_now().value;
    is_continue_sent_ = false;
  }
  bytes.remove_prefix(parser_->put(bytes));
  count_body();
  if (core_->bodies_bytes > core_->options.bodies_bytes_max) {
    refuse(503, "the server receives too much at once; try later");
    bytes = {};
    return true;
  }
  switch (parser_->state()) {
    case ParseState::kFailed:
      refuse(parser_->error_status(), parser_->problem());
      bytes = {};
      return true;
    case ParseState::kComplete:
      begin_exchange();
      return true;
    case ParseState::kNeedsMore:
      break;
  }
  if (bytes.size() > core_->options.header_bytes_max) {
    refuse(400, "a line of the request is too long");
    bytes = {};
    return true;
  }
  if (parser_->is_header_done() && parser_->expects_continue() && !is_continue_sent_) {
    is_continue_sent_ = true;
    write("HTTP/1.1 100 Continue\r\n\r\n");
  }
  return false;
}

void HttpConnection::count_body() {
  const std::size_t bytes = parser_->body_bytes();
  core_->bodies_bytes += bytes - counted_bytes_;
  counted_bytes_ = bytes;
}

void HttpConnection::drop_parser() {
  core_->bodies_bytes -= std::exchange(counted_bytes_, 0);
  parser_.reset();
}

void HttpConnection::begin_exchange() {
  is_http_1_0_ = parser_->is_http_1_0();
  keeps_ = parser_->keeps_connection() && !is_http_1_0_ && !core_->is_closing;
  Request request = parser_->take();
  drop_parser();
  is_head_ = request.method == "HEAD";
  stage_ = Stage::kExchange;
  if (is_refused_ || !core_->handler) {
    keeps_ = false;
    Response response = problem_response(503, "the server has too many connections; try later");
    response.headers.emplace_back("Retry-After", "1");
    return respond(response);
  }
  request.remote_address = remote_address_;
  request.peer_uris = peer_uris_;
  is_in_handler_ = true;
  core_->handler(std::make_unique<ServerExchange>(
      std::static_pointer_cast<HttpConnection>(shared_from_this()), std::move(request)));
  is_in_handler_ = false;
}

void HttpConnection::respond(const Response& response) {
  if (is_closed() || stage_ != Stage::kExchange) return;
  keeps_ = keeps_ && !core_->is_closing && !has_peer_ended_;
  std::string& out = output();
  append_response_head(
      out, response,
      {.framing = has_body(response.status) ? BodyFraming::kLength : BodyFraming::kNone,
       .keeps_connection = keeps_,
       .date = core_->date(),
       .common = &core_->options.headers});
  if (!is_head_ && has_body(response.status)) out += response.body;
  send_soon();
  if (!keeps_) {
    stage_ = Stage::kEnded;
    close_after_sending();
    return;
  }
  stage_ = Stage::kIdle;
  since_s_ = os::monotonic_now().value;
  // Within the handler take_requests() goes on.
  if (is_in_handler_) return;
  if (input_.empty())
    resume_reading();
  else
    go_on_later();
}

// A request that is not handed over; its rest is dropped.
void HttpConnection::refuse(int status, std::string_view problem) {
  drop_parser();
  input_ = std::string();
  stage_ = Stage::kExchange;
  is_head_ = false;
  keeps_ = false;
  respond(problem_response(status, problem));
}

void HttpConnection::begin_stream(const Response& head) {
  if (is_closed() || stage_ != Stage::kExchange) return;
  stage_ = Stage::kStream;
  append_response_head(output(), head,
                       {.framing = is_http_1_0_ ? BodyFraming::kUntilClose : BodyFraming::kChunked,
                        .keeps_connection = false,
                        .date = core_->date(),
                        .common = &core_->options.headers});
  send_soon();
  input_ = std::string();
  resume_reading();  // to see the client's end
  if (has_peer_ended_) post([this] { close(); });
}

std::shared_ptr<WebSocketSession> HttpConnection::begin_web_socket(const Request& request) {
  std::string& out = output();
  out += "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
  out += "Sec-WebSocket-Accept: " + web_socket_accept(request.header("Sec-WebSocket-Key"));
  out += "\r\n\r\n";
  stage_ = Stage::kWebSocket;
  const ServerOptions& options = core_->options;
  session_ = std::make_shared<WebSocketSession>(
      *this, WebSocketRole::kServer,
      WebSocketLimits{options.message_bytes_max, options.queued_bytes_max, options.idle_limit});
  auto session = session_;
  send_soon();
  if (is_closed()) session->on_socket_closed();
  if (!is_in_handler_) {
    // The first frames may have come before the handler decided.
    post([this, session] {
      const std::string bytes = std::exchange(input_, {});
      if (!bytes.empty() && !is_closed()) session->on_input(bytes);
      if (!is_closed()) resume_reading();
    });
  }
  return session;
}

bool HttpConnection::send_piece(std::string_view bytes) {
  if (is_closed() || is_closing() || stage_ != Stage::kStream) return false;
  if (queued_bytes() + bytes.size() > core_->options.queued_bytes_max) {
    post([this] { close(); });
    return false;
  }
  if (is_head_) return true;
  if (is_http_1_0_)
    output() += bytes;
  else
    append_chunk(output(), bytes);
  send_soon();
  return true;
}

void HttpConnection::set_on_stream_closed(std::function<void()> handler) {
  on_stream_closed_ = std::move(handler);
  if (is_closed()) post([this] { report_stream_closed(); });
}

void HttpConnection::report_stream_closed() {
  if (const auto handler = std::exchange(on_stream_closed_, nullptr)) handler();
}

void HttpConnection::end_stream() {
  on_stream_closed_ = nullptr;
  if (is_closed() || stage_ != Stage::kStream) return;
  stage_ = Stage::kEnded;
  if (!is_http_1_0_ && !is_head_) output() += kLastChunk;
  send_soon();
  close_after_sending();
}

void HttpConnection::check_limits(Seconds now) {
  const auto self = shared_from_this();
  const ServerOptions& options = core_->options;
  check_progress(now, options.send_limit);
  if (is_closed() || is_closing()) return;
  if (session_ != nullptr) session_->check_silence(now);
  if (is_closed()) return;
  const double time_s = now.value - since_s_;
  if (!is_open()) {
    if (time_s > options.request_limit.value) close();
  } else if (stage_ == Stage::kRequest) {
    if (time_s > options.request_limit.value) refuse(408, "the request did not come in time");
  } else if (stage_ == Stage::kIdle && queued_bytes() == 0) {
    if (time_s > options.idle_limit.value) close_after_sending();
  }
}

void HttpConnection::close_if_idle() {
  if (stage_ == Stage::kIdle && is_open() && queued_bytes() == 0) close_after_sending();
}

}  // namespace regatta::http
