#include "regatta/base/http/internal/web_socket_frames.h"

#include <algorithm>
#include <utility>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "regatta/base/core/result.h"
#include "regatta/base/http/internal/header_text.h"

namespace regatta::http {
namespace {

constexpr unsigned char kFinal = 0x80;
constexpr unsigned char kReserved = 0x70;
constexpr unsigned char kMasked = 0x80;
constexpr std::size_t kControlMax = 125;  // section 5.5
constexpr std::size_t kKeyBytes = 16;

void random_bytes(unsigned char* into, std::size_t count) {
  REGATTA_CHECK(::RAND_bytes(into, static_cast<int>(count)) == 1);
}

std::string base64(const unsigned char* bytes, std::size_t count) {
  std::string text((count + 2) / 3 * 4 + 1, '\0');
  const int size = ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes,
                                     static_cast<int>(count));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::uint64_t big_endian(const unsigned char* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value = value << 8 | bytes[i];
  return value;
}

}  // namespace

void append_frame(std::string& out, WebSocketRole from, FrameOpcode opcode,
                  std::string_view payload) {
  const unsigned char mask_bit = from == WebSocketRole::kClient ? kMasked : 0;
  const auto push = [&out](std::uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
      out += static_cast<char>(value >> shift & 0xFF);
  };
  push(static_cast<unsigned char>(kFinal | static_cast<unsigned char>(opcode)), 1);
  if (payload.size() <= kControlMax) {
    push(mask_bit | payload.size(), 1);
  } else if (payload.size() <= 0xFFFF) {
    push(static_cast<unsigned char>(mask_bit | 126), 1);
    push(payload.size(), 2);
  } else {
    push(static_cast<unsigned char>(mask_bit | 127), 1);
    push(payload.size(), 8);
  }
  if (mask_bit == 0) {
    out += payload;
    return;
  }
  std::array<unsigned char, 4> mask{};
  random_bytes(mask.data(), mask.size());
  out.append(reinterpret_cast<const char*>(mask.data()), mask.size());
  const std::size_t begin = out.size();
  out += payload;
  for (std::size_t i = 0; i < payload.size(); ++i)
    out[begin + i] = static_cast<char>(out[begin + i] ^ mask[i % 4]);
}

void append_close_frame(std::string& out, WebSocketRole from, std::uint16_t status) {
  const std::string payload = {static_cast<char>(status >> 8), static_cast<char>(status & 0xFF)};
  append_frame(out, from, FrameOpcode::kClose, payload);
}

FrameReader::Event FrameReader::fail(std::uint16_t status) {
  is_over_ = true;
  error_status_ = status;
  return Event::kError;
}

// Whether the header is complete.
bool FrameReader::take_header(std::string_view& bytes) {
  for (;;) {
    std::size_t needed = 2;
    if (header_size_ >= 2) {
      const std::size_t length = header_[1] & 0x7F;
      needed += length == 126 ? 2 : length == 127 ? 8 : 0;
      needed += (header_[1] & kMasked) != 0 ? 4 : 0;
    }
    if (header_size_ >= 2 && header_size_ == needed) return true;
    const std::size_t part = std::min(needed - header_size_, bytes.size());
    if (part == 0) return false;
    std::ranges::copy(bytes.substr(0, part), header_.begin() + header_size_);
    header_size_ = static_cast<std::uint8_t>(header_size_ + part);
    bytes.remove_prefix(part);
  }
}

// kNeedsMore: the header is right.
FrameReader::Event FrameReader::check_header() {
  const std::size_t short_length = header_[1] & 0x7F;
  length_ = short_length;
  if (short_length == 126) length_ = big_endian(header_.data() + 2, 2);
  if (short_length == 127) length_ = big_endian(header_.data() + 2, 8);
  const auto opcode = static_cast<FrameOpcode>(header_[0] & 0x0F);
  const bool is_final = (header_[0] & kFinal) != 0;
  is_control_ = static_cast<int>(opcode) >= 8;
  if ((header_[0] & kReserved) != 0) return fail(kCloseProtocol);
  if (((header_[1] & kMasked) != 0) != (from_ == WebSocketRole::kClient))
    return fail(kCloseProtocol);
  switch (opcode) {
    case FrameOpcode::kClose:
    case FrameOpcode::kPing:
    case FrameOpcode::kPong:
      return is_final && length_ <= kControlMax ? Event::kNeedsMore : fail(kCloseProtocol);
    case FrameOpcode::kText:
      return fail(kCloseUnsupported);
    case FrameOpcode::kBinary:
      if (is_message_open_) return fail(kCloseProtocol);
      break;
    case FrameOpcode::kContinuation:
      if (!is_message_open_) return fail(kCloseProtocol);
      break;
    default:
      return fail(kCloseProtocol);
  }
  if (length_ > message_bytes_max_ || message_.size() > message_bytes_max_ - length_)
    return fail(kCloseTooLarge);
  return Event::kNeedsMore;
}

FrameReader::Event FrameReader::finish_frame() {
  const auto opcode = static_cast<FrameOpcode>(header_[0] & 0x0F);
  const bool is_final = (header_[0] & kFinal) != 0;
  has_header_ = false;
  header_size_ = 0;
  taken_ = 0;
  switch (opcode) {
    case FrameOpcode::kPing:
      return Event::kPing;
    case FrameOpcode::kPong:
      return Event::kPong;
    case FrameOpcode::kClose:
      is_over_ = true;
      return Event::kClose;
    default:
      is_message_open_ = !is_final;
      is_delivered_ = is_final;
      return is_final ? Event::kMessage : Event::kNeedsMore;
  }
}

FrameReader::Event FrameReader::next(std::string_view& bytes) {
  if (is_over_) return Event::kNeedsMore;
  if (std::exchange(is_delivered_, false)) message_ = std::string();
  for (;;) {
    if (!has_header_) {
      if (!take_header(bytes)) return Event::kNeedsMore;
      has_header_ = true;
      if (check_header() == Event::kError) return Event::kError;
      if (is_control_) control_.clear();
    }
    std::string& target = is_control_ ? control_ : message_;
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(length_ - taken_, bytes.size()));
    const std::size_t begin = target.size();
    target += bytes.substr(0, part);
    bytes.remove_prefix(part);
    if ((header_[1] & kMasked) != 0) {
      const unsigned char* const mask = header_.data() + header_size_ - 4;
      for (std::size_t i = 0; i < part; ++i)
        target[begin + i] = static_cast<char>(target[begin + i] ^ mask[(taken_ + i) % 4]);
    }
    taken_ += part;
    if (taken_ < length_) return Event::kNeedsMore;
    const Event event = finish_frame();
    if (event != Event::kNeedsMore) return event;
  }
}

std::string new_web_socket_key() {
  std::array<unsigned char, kKeyBytes> key{};
  random_bytes(key.data(), key.size());
  return base64(key.data(), key.size());
}

std::string web_socket_accept(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  REGATTA_CHECK(
      ::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha1(), nullptr) == 1);
  return base64(digest.data(), size);
}

bool asks_for_web_socket(const Request& request) {
  constexpr std::size_t kKeyTextBytes = 24;
  return request.method == "GET" && has_token(request.header("Connection"), "upgrade") &&
         has_token(request.header("Upgrade"), "websocket") &&
         request.header("Sec-WebSocket-Version") == "13" &&
         request.header("Sec-WebSocket-Key").size() == kKeyTextBytes;
}

}  // namespace regatta::http
