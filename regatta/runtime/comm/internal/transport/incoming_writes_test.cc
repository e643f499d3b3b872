#include "regatta/runtime/comm/internal/transport/incoming_writes.h"

#include <array>
#include <cstddef>

#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

TEST(IncomingWrites, GiveThePartsOfAMessageInTheOrderOfTheirArrival) {
  std::array<std::byte, 100> memory{};
  IncomingWrites writes;
  const std::uint32_t number = writes.add({.message_bytes = 100, .call = 5}, memory.data(), {});
  const auto first = writes.receive(number, 60);
  const auto second = writes.receive(number, 40);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->data, memory.data());
  EXPECT_EQ(second->data, memory.data() + 60);
  EXPECT_EQ(second->header.offset, 60U);
  EXPECT_EQ(second->header.payload_bytes, 40U);
  EXPECT_EQ(second->header.message_bytes, 100U);
  EXPECT_EQ(second->header.call, 5U);
}

TEST(IncomingWrites, RefuseMoreBytesThanWereGranted) {
  std::array<std::byte, 100> memory{};
  IncomingWrites writes;
  const std::uint32_t number = writes.add({.message_bytes = 100}, memory.data(), {});
  EXPECT_FALSE(writes.receive(number, 101));
  EXPECT_FALSE(writes.receive(number, 0));
  EXPECT_FALSE(writes.receive(number + 1, 1));
  ASSERT_TRUE(writes.receive(number, 100));
  EXPECT_FALSE(writes.receive(number, 1));
}

TEST(IncomingWrites, UseThePlaceOfACompleteMessageAgain) {
  std::array<std::byte, 100> memory{};
  IncomingWrites writes;
  const std::uint32_t first = writes.add({.message_bytes = 10}, memory.data(), {});
  const std::uint32_t second = writes.add({.message_bytes = 10}, memory.data() + 10, {});
  EXPECT_NE(first, second);
  ASSERT_TRUE(writes.receive(first, 10));
  EXPECT_EQ(writes.add({.message_bytes = 20}, memory.data() + 20, {}), first);
}

}  // namespace
}  // namespace regatta::comm
