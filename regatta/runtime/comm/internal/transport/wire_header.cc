#include "regatta/runtime/comm/internal/transport/wire_header.h"

#include <cstddef>
#include <cstdint>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"

namespace regatta::comm {
namespace {

constexpr std::uint16_t kMagic = 0x5247;  // "GR"
constexpr std::uint8_t kVersion = 2;
constexpr std::size_t kChecksumAt = kHeaderBytes - sizeof(std::uint32_t);

// Catches a stream that lost its place; TCP and memory guard against changed bits themselves.
std::uint32_t checksum(const std::byte* bytes) {
  std::uint64_t sum = 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 0; i < kChecksumAt; i += 4)
    sum = (sum ^ get<std::uint32_t>(bytes + i)) * 0x100000001b3ULL + (sum >> 29);
  return static_cast<std::uint32_t>(sum ^ (sum >> 32));
}

bool sizes_fit(const PacketHeader& header) {
  const std::uint64_t payload = header.payload_bytes;
  switch (header.kind) {
    case PacketKind::kData:
      return payload <= kFragmentBytesMax && header.offset <= header.message_bytes &&
             payload <= header.message_bytes - header.offset &&
             (payload > 0 || header.message_bytes == 0);
    case PacketKind::kAbort:
    case PacketKind::kReply:
    case PacketKind::kConnect:
    case PacketKind::kStatement:
      return payload <= kTextBytesMax;
    case PacketKind::kGrant:
      return payload == 0 || payload == kPlaceBytes;
    default:
      return payload == 0;
  }
}

}  // namespace

void encode_header(const PacketHeader& header, HeaderBytes out) {
  std::byte* at = out.data();
  put(at, kMagic);
  put(at + 2, kVersion);
  put(at + 3, header.kind);
  put(at + 4, header.payload_bytes);
  put(at + 8, header.key.group);
  put(at + 16, header.key.operation);
  put(at + 20, header.key.step);
  put(at + 24, header.message_bytes);
  put(at + 32, header.offset);
  put(at + 40, header.call);
  put(at + kChecksumAt, checksum(at));
}

Result<PacketHeader> decode_header(ConstHeaderBytes in) {
  const std::byte* at = in.data();
  const auto bad = [](const char* what) {
    return Error{Code::kInvalidInput, std::string("packet header: ") + what};
  };
  if (get<std::uint16_t>(at) != kMagic) return bad("wrong magic");
  if (get<std::uint8_t>(at + 2) != kVersion) return bad("unknown version");
  if (get<std::uint32_t>(at + kChecksumAt) != checksum(at)) return bad("wrong checksum");
  const auto kind = get<std::uint8_t>(at + 3);
  if (kind < static_cast<std::uint8_t>(PacketKind::kData) ||
      kind > static_cast<std::uint8_t>(PacketKind::kStatement))
    return bad("unknown kind");
  const PacketHeader header{
      .kind = static_cast<PacketKind>(kind),
      .key = {get<std::uint64_t>(at + 8), get<std::uint32_t>(at + 16), get<std::uint32_t>(at + 20)},
      .message_bytes = get<std::uint64_t>(at + 24),
      .offset = get<std::uint64_t>(at + 32),
      .payload_bytes = get<std::uint32_t>(at + 4),
      .call = get<std::uint32_t>(at + 40)};
  if (!sizes_fit(header)) return bad("sizes out of bounds");
  return header;
}

}  // namespace regatta::comm
