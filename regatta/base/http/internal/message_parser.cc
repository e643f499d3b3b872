#include "regatta/base/http/internal/message_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "regatta/base/http/internal/header_text.h"
#include "regatta/base/http/internal/request_target.h"

namespace regatta::http {
namespace {

namespace beast_http = boost::beast::http;
using BeastError = boost::beast::error_code;
using BeastText = boost::beast::string_view;

constexpr std::size_t kReserveMax = 64 << 10;

std::string_view view(BeastText text) {
  return {text.data(), text.size()};
}

// Requests and responses alike have headers, and a body that goes somewhere.
template <bool kIsRequest>
class BeastParser : public beast_http::basic_parser<kIsRequest> {
 public:
  explicit BeastParser(ParserLimits limits) {
    this->eager(true);
    this->header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
    this->body_limit(limits.body_bytes_max);
  }

  ParseState state = ParseState::kNeedsMore;
  BeastError error;

  std::size_t put_all(std::string_view bytes) {
    std::size_t taken = 0;
    while (state == ParseState::kNeedsMore && taken < bytes.size()) {
      error = {};
      const std::size_t part =
          this->put(boost::asio::buffer(bytes.data() + taken, bytes.size() - taken), error);
      taken += part;
      if (error == beast_http::error::need_more) break;
      if (error)
        state = ParseState::kFailed;
      else if (this->is_done())
        state = ParseState::kComplete;
    }
    return taken;
  }

 protected:
  virtual void take_field(std::string_view name, std::string_view value) = 0;
  virtual bool take_body(std::string_view bytes) = 0;

 private:
  void on_field_impl(beast_http::field, BeastText name, BeastText value, BeastError&) override {
    take_field(view(name), view(value));
  }
  void on_header_impl(BeastError&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  std::size_t on_body_impl(BeastText body, BeastError& failure) override {
    if (!take_body(view(body))) failure = beast_http::error::end_of_stream;
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, BeastText, BeastError&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastText body, BeastError& failure) override {
    return on_body_impl(body, failure);
  }
  void on_finish_impl(BeastError&) override {}
};

int status_of(const BeastError& error) {
  if (error == beast_http::error::header_limit) return 431;
  if (error == beast_http::error::body_limit) return 413;
  if (error == beast_http::error::bad_version) return 505;
  return 400;
}

}  // namespace

struct RequestParser::Impl final : BeastParser<true> {
  using BeastParser<true>::BeastParser;

  Request request;
  int hosts = 0;
  int status = 0;  // 0: it is well formed so far
  std::string_view problem;

  void fail(int number, std::string_view sentence) {
    state = ParseState::kFailed;
    status = number;
    problem = sentence;
  }
  // Beast leaves this to its users.
  void check_header() {
    if (version() >= 11 && hosts != 1)
      fail(400, "a request of HTTP/1.1 needs one Host header");
    else if (const std::string_view expect = request.header("Expect");
             !expect.empty() && !is_same_token(expect, "100-continue"))
      fail(417, "the one expectation that is known is 100-continue");
    else if (has_other_coding)
      // Its end would be another for a proxy than here (RFC 9112, section 6.3).
      fail(400, "the one transfer coding that is known is chunked");
    else if (!target_status)
      fail(400, "the target of the request is not well formed; send /path?name=value");
  }

  int version() const { return version_number; }
  int version_number = 11;
  bool has_other_coding = false;
  Status target_status;

 private:
  void on_request_impl(beast_http::verb, BeastText method, BeastText target, int number,
                       BeastError&) override {
    request.method = std::string(view(method));
    version_number = number;
    target_status = decode_target(view(target), request);
  }
  void on_response_impl(int, BeastText, int, BeastError&) override {}
  void take_field(std::string_view name, std::string_view value) override {
    hosts += is_same_token(name, "Host") ? 1 : 0;
    if (is_same_token(name, "Transfer-Encoding") && !is_same_token(value, "chunked"))
      has_other_coding = true;
    request.headers.emplace_back(name, value);
  }
  bool take_body(std::string_view bytes) override {
    if (request.body.empty())
      if (const auto length = content_length())
        request.body.reserve(
            static_cast<std::size_t>(std::min<std::uint64_t>(*length, kReserveMax)));
    request.body += bytes;
    return true;
  }
};

RequestParser::RequestParser(ParserLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::put(std::string_view bytes) {
  const bool was_header_done = impl_->is_header_done();
  const std::size_t taken = impl_->put_all(bytes);
  if (impl_->state == ParseState::kFailed) {
    impl_->status = status_of(impl_->error);
    impl_->problem = impl_->status == 431   ? "the header of the request is too large"
                     : impl_->status == 413 ? "the body of the request is too large"
                                            : "the request is not well formed";
  } else if (!was_header_done && impl_->is_header_done()) {
    impl_->check_header();
  }
  return taken;
}

ParseState RequestParser::state() const {
  return impl_->state;
}
bool RequestParser::is_header_done() const {
  return impl_->is_header_done();
}
std::size_t RequestParser::body_bytes() const {
  return impl_->request.body.size();
}
bool RequestParser::expects_continue() const {
  return impl_->version() >= 11 && !impl_->request.header("Expect").empty();
}
bool RequestParser::keeps_connection() const {
  return impl_->is_header_done() && impl_->keep_alive();
}
bool RequestParser::is_http_1_0() const {
  return impl_->version() < 11;
}
int RequestParser::error_status() const {
  return impl_->status;
}
std::string_view RequestParser::problem() const {
  return impl_->problem;
}
Request RequestParser::take() {
  return std::move(impl_->request);
}

struct ResponseParser::Impl {
  struct Message final : BeastParser<false> {
    Message(ParserLimits limits, const Piece* sink) : BeastParser<false>(limits), piece(sink) {}

    Response response{.content_type = {}};
    const Piece* piece;
    bool is_ended = false;

   private:
    void on_request_impl(beast_http::verb, BeastText, BeastText, int, BeastError&) override {}
    void on_response_impl(int status, BeastText, int, BeastError&) override {
      response.status = status;
    }
    void take_field(std::string_view name, std::string_view value) override {
      if (is_same_token(name, "Content-Type"))
        response.content_type = std::string(value);
      else
        response.headers.emplace_back(name, value);
    }
    bool take_body(std::string_view bytes) override {
      if (!*piece || response.status >= 300) {
        response.body += bytes;
        return true;
      }
      is_ended = is_ended || !(*piece)(bytes);
      return !is_ended;
    }
  };

  Impl(bool head, ParserLimits most, Piece sink)
      : is_head(head), limits(most), piece(std::move(sink)) {
    begin();
  }
  void begin() {
    message.emplace(limits, &piece);
    message->skip(is_head);
  }

  bool is_head;
  ParserLimits limits;
  Piece piece;
  bool has_begun = false;
  std::optional<Message> message;
};

ResponseParser::ResponseParser(bool is_head, ParserLimits limits, Piece piece)
    : impl_(std::make_unique<Impl>(is_head, limits, std::move(piece))) {}
ResponseParser::~ResponseParser() = default;

std::size_t ResponseParser::put(std::string_view bytes) {
  impl_->has_begun = impl_->has_begun || !bytes.empty();
  std::size_t taken = impl_->message->put_all(bytes);
  const int status = impl_->message->response.status;
  // 101 ends the HTTP of a connection; the other interim responses come before the response.
  if (state() == ParseState::kComplete && status >= 100 && status < 200 && status != 101) {
    impl_->begin();
    return taken + put(bytes.substr(taken));
  }
  return taken;
}

void ResponseParser::put_end() {
  if (state() != ParseState::kNeedsMore) return;
  BeastError error;
  if (impl_->message->is_header_done()) impl_->message->put_eof(error);
  impl_->message->state =
      impl_->message->is_done() && !error ? ParseState::kComplete : ParseState::kFailed;
  if (!error) error = beast_http::error::partial_message;
  impl_->message->error = error;
}

ParseState ResponseParser::state() const {
  return impl_->message->state;
}
bool ResponseParser::has_begun() const {
  return impl_->has_begun;
}
bool ResponseParser::is_ended_by_owner() const {
  return impl_->message->is_ended;
}
bool ResponseParser::keeps_connection() const {
  return state() == ParseState::kComplete && impl_->message->keep_alive();
}
std::string_view ResponseParser::problem() const {
  if (impl_->message->error == beast_http::error::partial_message)
    return "the connection ended before the response did";
  if (impl_->message->error == beast_http::error::body_limit) return "the response is too large";
  return "the response is no HTTP/1.1";
}
Response ResponseParser::take() {
  return std::move(impl_->message->response);
}

}  // namespace regatta::http
