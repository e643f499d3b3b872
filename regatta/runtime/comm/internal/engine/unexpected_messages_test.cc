#include "regatta/runtime/comm/internal/engine/unexpected_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

using testing::HasSubstr;

PacketHeader fragment(std::uint32_t step, std::uint64_t message_bytes) {
  return {.key = {.group = 1, .operation = 2, .step = step}, .message_bytes = message_bytes};
}

TEST(UnexpectedMessages, KeepOneMessageForAllItsFragments) {
  UnexpectedMessages messages;
  const auto first = messages.accept(fragment(1, 100));
  ASSERT_TRUE(first);
  EXPECT_EQ(*messages.accept(fragment(1, 100)), *first);
  EXPECT_EQ(messages.find(fragment(1, 100).key), *first);
  EXPECT_FALSE((*first)->is_complete());
  messages.erase(fragment(1, 100).key);
  EXPECT_EQ(messages.find(fragment(1, 100).key), nullptr);
}

TEST(UnexpectedMessages, RefuseAMessageThatChangesItsSizeOrNeedsAGrant) {
  UnexpectedMessages messages;
  ASSERT_TRUE(messages.accept(fragment(1, 100)));
  EXPECT_THAT(messages.accept(fragment(1, 101)).error().message, HasSubstr("by one name"));
  EXPECT_THAT(messages.accept(fragment(2, kEagerBytes + 1)).error().message,
              HasSubstr("was not granted"));
}

TEST(UnexpectedMessages, RefuseMoreThanTheCreditUntilSomeAreDelivered) {
  UnexpectedMessages messages;
  const auto count = static_cast<std::uint32_t>(kCreditBytes / credit_weight(kEagerBytes));
  for (std::uint32_t step = 0; step < count; ++step)
    ASSERT_TRUE(messages.accept(fragment(step, kEagerBytes)));
  messages.erase(fragment(0, kEagerBytes).key);
  EXPECT_TRUE(messages.accept(fragment(count, kEagerBytes)));
  EXPECT_THAT(messages.accept(fragment(count + 1, kEagerBytes)).error().message,
              HasSubstr("more than its credit"));
}

}  // namespace
}  // namespace regatta::comm
