#include "regatta/runtime/comm/internal/transport/abort_message.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <sys/socket.h>

#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {
namespace {

// A World says little on the control connection before all have joined it.
constexpr std::size_t kReadBytesMax = std::size_t{1} << 20;

std::vector<std::byte> read_all(int fd) {
  std::vector<std::byte> bytes;
  std::array<std::byte, 4096> part{};
  while (bytes.size() < kReadBytesMax) {
    const ssize_t got = recv(fd, part.data(), part.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    bytes.insert(bytes.end(), part.begin(), part.begin() + got);
  }
  return bytes;
}

std::optional<Error> find_abort(std::span<const std::byte> bytes) {
  while (bytes.size() >= kHeaderBytes) {
    const auto header = decode_header(bytes.first<kHeaderBytes>());
    if (!header || bytes.size() < kHeaderBytes + header->payload_bytes) break;
    const auto payload = bytes.subspan(kHeaderBytes, header->payload_bytes);
    if (header->kind == PacketKind::kAbort)
      return decode_abort({reinterpret_cast<const char*>(payload.data()), payload.size()});
    bytes = bytes.subspan(kHeaderBytes + header->payload_bytes);
  }
  return std::nullopt;
}

std::optional<Error> find_abort(RingReader reader) {
  for (;;) {
    const auto record = reader.peek();
    if (!record || !record->has_value()) return std::nullopt;
    if ((*record)->header.kind == PacketKind::kAbort)
      return decode_abort(
          {reinterpret_cast<const char*>((*record)->payload), (*record)->header.payload_bytes});
    reader.pop();
  }
}

}  // namespace

std::string encode_abort(const Error& error) {
  const auto code = static_cast<char>('0' + static_cast<int>(error.code));
  return (code + error.message).substr(0, kTextBytesMax);
}

Error decode_abort(std::string_view text) {
  Error error{Code::kUnavailable, "a peer gave up"};
  if (text.empty()) return error;
  const auto code = static_cast<Code>(text.front() - '0');
  if (code >= Code::kInvalidInput && code <= Code::kUnsupported) error.code = code;
  error.message = text.substr(1);
  return error;
}

void send_abort_message(PeerChannel& channel, const Error& error) {
  const std::string text = encode_abort(error);
  const PacketHeader header{.kind = PacketKind::kAbort,
                            .payload_bytes = static_cast<std::uint32_t>(text.size())};
  if (channel.segment) {
    RingWriter writer = channel.segment->writer(channel.is_creator ? 0 : 1);
    const auto slot = writer.reserve(text.size(), text.size());
    if (!slot) return;
    std::memcpy(slot->payload, text.data(), text.size());
    writer.publish(header);
  } else if (channel.tcp.control) {
    std::vector<std::byte> bytes(kHeaderBytes + text.size());
    encode_header(header, std::span(bytes).first<kHeaderBytes>());
    std::memcpy(bytes.data() + kHeaderBytes, text.data(), text.size());
    send(channel.tcp.control.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

std::optional<Error> read_abort_message(PeerChannel& channel) {
  if (channel.segment) return find_abort(channel.segment->reader(channel.is_creator ? 1 : 0));
  if (channel.tcp.control) return find_abort(read_all(channel.tcp.control.get()));
  return std::nullopt;
}

int close_event_fd(const PeerChannel& channel) {
  return channel.segment ? channel.wake_socket.get() : channel.tcp.control.get();
}

}  // namespace regatta::comm
