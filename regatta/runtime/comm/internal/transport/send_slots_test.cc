#include "regatta/runtime/comm/internal/transport/send_slots.h"

#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

TEST(SendSlots, UseTheQueuePairsInTurn) {
  SendSlots slots(8);
  slots.set_queues(3);
  for (const std::size_t expected : {0U, 1U, 2U, 0U}) {
    EXPECT_EQ(slots.next_queue(), expected);
    slots.acquire({.queue = slots.next_queue()});
  }
}

TEST(SendSlots, PreferTheQueuePairWithTheFewestPosted) {
  SendSlots slots(8);
  slots.set_queues(2);
  slots.acquire({.queue = 0});
  const std::uint32_t second = slots.acquire({.queue = 1});
  slots.acquire({.queue = 0});
  slots.release(second);
  EXPECT_EQ(slots.next_queue(), 1U);
  EXPECT_EQ(slots.in_flight(0), 2U);
}

TEST(SendSlots, AreFreeAgainAfterTheirRelease) {
  SendSlots slots(2);
  slots.set_queues(1);
  slots.acquire({.queue = 0});
  const std::uint32_t slot = slots.acquire({.queue = 0, .bytes = 7});
  EXPECT_FALSE(slots.has_free());
  EXPECT_EQ(slots.in_use(), 2U);
  EXPECT_EQ(slots.release(slot).bytes, 7U);
  EXPECT_TRUE(slots.has_free());
  EXPECT_EQ(slots.in_use(), 1U);
}

}  // namespace
}  // namespace regatta::comm
