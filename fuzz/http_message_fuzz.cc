// fuzz/http_message_fuzz.cc: any bytes as HTTP requests, as a response, as a request's target, and
// as frames of a WebSocket, whole and in pieces.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/http/internal/message_parser.h"
#include "regatta/base/http/internal/request_target.h"
#include "regatta/base/http/internal/web_socket_frames.h"

namespace {

using namespace regatta;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::size_t kHeaderMax = 1000;
constexpr std::size_t kBodyMax = 1000;
constexpr std::size_t kMessageMax = 500;

// Gives the bytes in pieces as a connection does, and returns the state at the end.
template <typename Parser>
http::ParseState parse(Parser& parser, std::string_view text, std::size_t piece) {
  std::string input;
  for (std::size_t at = 0; at < text.size() && parser.state() == http::ParseState::kNeedsMore;
       at += piece) {
    input += text.substr(at, piece);
    const std::size_t taken = parser.put(input);
    REGATTA_CHECK(taken <= input.size());
    input.erase(0, taken);
  }
  return parser.state();
}

void check_requests(std::string_view text) {
  http::RequestParser whole({kHeaderMax, kBodyMax});
  http::RequestParser cut({kHeaderMax, kBodyMax});
  const auto state = parse(whole, text, text.size() + 1);
  if (state == http::ParseState::kFailed) REGATTA_CHECK(whole.error_status() >= 400);
  if (state != http::ParseState::kComplete) {
    parse(cut, text, 3);
    return;
  }
  // A request does not depend on how its bytes were cut.
  REGATTA_CHECK(parse(cut, text, 3) == state);
  const http::Request request = whole.take();
  const http::Request same = cut.take();
  REGATTA_CHECK(request.path == same.path && request.body == same.body &&
                request.headers == same.headers && request.query == same.query);
  REGATTA_CHECK(request.path.starts_with('/') && request.body.size() <= kBodyMax);
  REGATTA_CHECK(request.path.find('\0') == std::string::npos);
}

void check_frames(std::string_view text, http::WebSocketRole from) {
  http::FrameReader reader(from, kMessageMax);
  std::string_view rest = text;
  for (;;) {
    const auto event = reader.next(rest);
    if (event == http::FrameReader::Event::kNeedsMore) break;
    if (event == http::FrameReader::Event::kMessage)
      REGATTA_CHECK(reader.payload().size() <= kMessageMax);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_requests(text);
  http::ResponseParser response(false, {kHeaderMax, kBodyMax});
  parse(response, text, 5);
  response.put_end();
  REGATTA_CHECK(response.state() != http::ParseState::kNeedsMore);
  http::Request request;
  if (http::decode_target(text, request)) REGATTA_CHECK(request.path.starts_with('/'));
  check_frames(text, http::WebSocketRole::kClient);
  check_frames(text, http::WebSocketRole::kServer);
  return 0;
}
