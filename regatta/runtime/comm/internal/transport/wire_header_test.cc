#include "regatta/runtime/comm/internal/transport/wire_header.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

using Bytes48 = std::array<std::byte, kHeaderBytes>;

PacketHeader example() {
  return {.kind = PacketKind::kData,
          .key = {.group = 0x123456789abcdef0ULL, .operation = 77, .step = 5},
          .message_bytes = 1 << 20,
          .offset = 4096,
          .payload_bytes = 65536};
}

Bytes48 encoded(const PacketHeader& header) {
  Bytes48 bytes{};
  encode_header(header, bytes);
  return bytes;
}

TEST(WireHeader, ComesBackAsItWas) {
  const auto header = decode_header(encoded(example()));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->kind, PacketKind::kData);
  EXPECT_EQ(header->key, example().key);
  EXPECT_EQ(header->message_bytes, example().message_bytes);
  EXPECT_EQ(header->offset, example().offset);
  EXPECT_EQ(header->payload_bytes, example().payload_bytes);
}

TEST(WireHeader, RefusesSizesThatDoNotFit) {
  const auto refused = [](auto change) {
    PacketHeader header = example();
    change(header);
    return !decode_header(encoded(header)).has_value();
  };
  EXPECT_FALSE(refused([](PacketHeader&) {}));
  EXPECT_TRUE(refused([](PacketHeader& h) { h.payload_bytes = kFragmentBytesMax + 1; }));
  EXPECT_TRUE(refused([](PacketHeader& h) { h.offset = h.message_bytes - 1; }));
  EXPECT_TRUE(refused([](PacketHeader& h) { h.offset = ~std::uint64_t{0} - 10; }));
  EXPECT_TRUE(refused([](PacketHeader& h) { h.payload_bytes = 0; }));
  EXPECT_TRUE(refused([](PacketHeader& h) { h.kind = PacketKind::kGrant; }));
  EXPECT_TRUE(refused([](PacketHeader& h) {
    h.kind = PacketKind::kAbort;
    h.payload_bytes = kTextBytesMax + 1;
  }));
  EXPECT_TRUE(refused([](PacketHeader& h) { h.kind = static_cast<PacketKind>(0); }));
  EXPECT_TRUE(refused([](PacketHeader& h) { h.kind = static_cast<PacketKind>(200); }));
}

// Any change of a single bit is noticed.
TEST(WireHeader, RefusesAChangedBit) {
  for (std::size_t bit = 0; bit < kHeaderBytes * 8; ++bit) {
    Bytes48 bytes = encoded(example());
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(decode_header(bytes)) << bit;
  }
}

TEST(WireHeader, SurvivesRandomBytes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200000; ++round) {
    Bytes48 bytes = encoded(example());
    // From a few changed bytes to noise all over.
    const auto changes = 1 + random() % kHeaderBytes;
    for (std::size_t i = 0; i < changes; ++i)
      bytes[random() % kHeaderBytes] = static_cast<std::byte>(random());
    const auto header = decode_header(bytes);
    if (!header) continue;
    EXPECT_LE(header->payload_bytes, kFragmentBytesMax);
    EXPECT_LE(header->offset + header->payload_bytes, header->message_bytes);
  }
}

}  // namespace
}  // namespace regatta::comm
