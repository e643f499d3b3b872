#include "regatta/runtime/comm/internal/transport/shm_ring.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace regatta::comm {
namespace {

PacketHeader data_header(std::size_t payload) {
  PacketHeader header;
  header.kind = PacketKind::kData;
  header.message_bytes = payload;
  header.payload_bytes = static_cast<std::uint32_t>(payload);
  return header;
}

struct Ring {
  RingSegment segment = *RingSegment::create();
  RingWriter writer = segment.writer(0);
  RingReader reader = segment.reader(0);

  // The bytes that were written; none when the ring is too full for `least`.
  std::vector<std::byte> write(std::size_t bytes, std::size_t least, std::uint8_t seed) {
    const auto slot = writer.reserve(bytes, least);
    if (!slot) return {};
    EXPECT_GE(slot->bytes, std::min(bytes, least));
    EXPECT_LE(slot->bytes, bytes);
    for (std::size_t i = 0; i < slot->bytes; ++i)
      slot->payload[i] = std::byte(seed + i);
    std::vector<std::byte> written(slot->payload, slot->payload + slot->bytes);
    writer.publish(data_header(slot->bytes));
    return written;
  }
};

// Takes the oldest record and compares it with the first of `expected`; there is none when that is
// empty.
void read_one(Ring& ring, std::deque<std::vector<std::byte>>& expected) {
  const auto record = ring.reader.peek();
  ASSERT_TRUE(record) << record.error().message;
  ASSERT_EQ(record->has_value(), !expected.empty());
  if (expected.empty()) return;
  const std::vector<std::byte>& oldest = expected.front();
  ASSERT_EQ((*record)->header.payload_bytes, oldest.size());
  ASSERT_EQ(std::memcmp((*record)->payload, oldest.data(), oldest.size()), 0);
  ring.reader.pop();
  expected.pop_front();
}

TEST(ShmRing, GivesBackWhatWasWrittenInOrderWhateverTheSizes) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Ring ring;
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::size_t> size(1, kFragmentBytesMax);
    std::bernoulli_distribution writes(0.6);  // so that the ring fills up now and then
    std::deque<std::vector<std::byte>> expected;
    int full = 0;
    for (int i = 0; i < 2000; ++i) {
      if (!writes(random)) {
        ASSERT_NO_FATAL_FAILURE(read_one(ring, expected));
        continue;
      }
      auto written = ring.write(size(random), kFragmentBytesMin, static_cast<std::uint8_t>(i));
      full += written.empty() ? 1 : 0;
      if (!written.empty()) expected.push_back(std::move(written));
    }
    EXPECT_GT(full, 0);
  }
}

TEST(ShmRing, WakesTheSideThatWaits) {
  Ring ring;
  EXPECT_FALSE(ring.reader.sleep()) << "nothing came meanwhile";
  ASSERT_TRUE(ring.writer.reserve(64, 64));
  EXPECT_TRUE(ring.writer.publish(data_header(64)));
  EXPECT_TRUE(ring.reader.sleep()) << "a record is there";
  ring.reader.wake();
  while (!ring.write(kFragmentBytesMax, kFragmentBytesMax, 0).empty()) {
  }
  EXPECT_FALSE(ring.writer.wait_for_space());
  ASSERT_TRUE(ring.reader.peek());
  EXPECT_TRUE(ring.reader.pop());
}

TEST(ShmRing, RefusesARecordThatPassesWhatWasPublished) {
  Ring ring;
  const auto slot = ring.writer.reserve(64, 64);
  ASSERT_TRUE(slot);
  ring.writer.publish(data_header(64));
  // A peer that breaks the format: the header promises more than lies behind it.
  encode_header(data_header(4096), HeaderBytes(slot->payload - kLine, kHeaderBytes));
  const auto record = ring.reader.peek();
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, Code::kInvalidInput);
  EXPECT_EQ(record.error().message, "shared memory ring: broken record");
}

TEST(ShmRing, RefusesBytesThatAreNoHeader) {
  Ring ring;
  const auto slot = ring.writer.reserve(64, 64);
  ASSERT_TRUE(slot);
  ring.writer.publish(data_header(64));
  std::memset(slot->payload - kLine, 0xff, kHeaderBytes);
  const auto record = ring.reader.peek();
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, Code::kInvalidInput);
}

TEST(RingSegment, OfAnotherSizeIsRefused) {
  auto other = os::UniqueFd(::memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(other.get(), 4096), 0);
  const auto opened = RingSegment::open(std::move(other));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kInvalidInput);
}

}  // namespace
}  // namespace regatta::comm
