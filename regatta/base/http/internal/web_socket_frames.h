// http/internal/web_socket_frames.h: the frames and the opening handshake of WebSockets. Source:
// RFC 6455. Pure but for random keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/http/http_message.h"

namespace regatta::http {

enum class FrameOpcode : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10
};

// Status codes of a close frame (section 7.4.1).
inline constexpr std::uint16_t kCloseNormal = 1000;
inline constexpr std::uint16_t kCloseProtocol = 1002;
inline constexpr std::uint16_t kCloseUnsupported = 1003;
inline constexpr std::uint16_t kCloseTooLarge = 1009;

// A client masks its frames with random keys, a server must not.
enum class WebSocketRole : std::uint8_t { kServer, kClient };

// Appends one whole message or control frame.
void append_frame(std::string& out, WebSocketRole from, FrameOpcode opcode,
                  std::string_view payload);
void append_close_frame(std::string& out, WebSocketRole from, std::uint16_t status);

// Cuts the bytes of one direction into messages and control frames. Holds at most one message.
class FrameReader {
 public:
  enum class Event : std::uint8_t { kNeedsMore, kMessage, kPing, kPong, kClose, kError };

  // `from`: which end sends the bytes.
  FrameReader(WebSocketRole from, std::size_t message_bytes_max)
      : from_(from), message_bytes_max_(message_bytes_max) {}

  // Takes bytes from the front of `bytes` until there is an event. payload() is valid until the
  // next call. After kClose or kError nothing more is taken.
  Event next(std::string_view& bytes);
  const std::string& payload() const { return is_control_ ? control_ : message_; }
  // The status for a close frame after kError.
  std::uint16_t error_status() const { return error_status_; }

 private:
  bool take_header(std::string_view& bytes);
  Event check_header();
  Event finish_frame();
  Event fail(std::uint16_t status);

  WebSocketRole from_;
  bool is_over_ = false;
  bool is_control_ = false;
  bool is_message_open_ = false;  // a fragment came that was not the last
  bool is_delivered_ = false;     // message_ was given out
  bool has_header_ = false;
  std::uint8_t header_size_ = 0;
  std::uint16_t error_status_ = kCloseProtocol;
  std::array<unsigned char, 14> header_{};
  std::size_t message_bytes_max_;
  std::uint64_t length_ = 0;  // of the frame's payload
  std::uint64_t taken_ = 0;   // bytes of it
  std::string message_;
  std::string control_;
};

// A random value of Sec-WebSocket-Key.
std::string new_web_socket_key();
// The value of Sec-WebSocket-Accept for a key (section 4.2.2).
std::string web_socket_accept(std::string_view key);
// Whether the request asks for an upgrade to a WebSocket of version 13.
bool asks_for_web_socket(const Request& request);

}  // namespace regatta::http
