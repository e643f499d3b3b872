// fuzz/wire_header_fuzz.cc: any 48 bytes as the header of a packet: as they are, and with the
// fields that they hold and a right checksum.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace {

using namespace regatta::comm;  // NOLINT(google-build-using-namespace): a program of its own

void check_decoded(const std::array<std::byte, kHeaderBytes>& bytes) {
  const auto header = decode_header(bytes);
  if (!header) return;
  REGATTA_CHECK(header->payload_bytes <= std::max(kFragmentBytesMax, kTextBytesMax));
  if (header->kind == PacketKind::kData) {
    REGATTA_CHECK(header->offset <= header->message_bytes);
    REGATTA_CHECK(header->payload_bytes <= header->message_bytes - header->offset);
  }
  std::array<std::byte, kHeaderBytes> again{};
  encode_header(*header, again);
  REGATTA_CHECK(again == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::array<std::byte, kHeaderBytes> bytes{};
  if (size > 0) std::memcpy(bytes.data(), data, std::min(size, bytes.size()));
  check_decoded(bytes);
  PacketHeader header;
  const auto read = [&](auto& field, std::size_t at) {
    std::memcpy(&field, bytes.data() + at, sizeof field);
  };
  read(header.kind, 3);
  read(header.payload_bytes, 4);
  read(header.key, 8);
  read(header.message_bytes, 24);
  read(header.offset, 32);
  read(header.call, 40);
  encode_header(header, bytes);
  check_decoded(bytes);
  return 0;
}
