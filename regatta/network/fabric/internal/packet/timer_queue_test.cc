#include "regatta/network/fabric/internal/packet/timer_queue.h"

#include <gtest/gtest.h>

namespace regatta::fabric::packet {
namespace {

TEST(PacketTimerQueue, ReturnsTimersByTimeAndThenByEntry) {
  TimerQueue timers(1);
  EXPECT_EQ(timers.next_at(), kNever);
  timers.push(20, TimerKind::kCnp, 1);
  timers.push(10, TimerKind::kRetransmit, 2);
  timers.push(10, TimerKind::kCnp, 3);
  EXPECT_EQ(timers.next_at(), 10);
  for (const std::uint32_t of : {2U, 3U, 1U})
    EXPECT_EQ(timers.pop().of, of);
  EXPECT_TRUE(timers.empty());
}

TEST(PacketTimerQueue, QueuesAWakeOnlyIfItIsTheEarliestOfItsLink) {
  TimerQueue timers(2);
  timers.push_wake(50, 1, 0);
  timers.push_wake(60, 1, 0);  // after the one at 50
  timers.push_wake(60, 0, 0);
  timers.push_wake(40, 1, 0);
  timers.push_wake(70, 1, 40);  // the one at 40 is over
  for (const Picoseconds at : {40, 50, 60, 70})
    EXPECT_EQ(timers.pop().at, at);
  EXPECT_TRUE(timers.empty());
}

}  // namespace
}  // namespace regatta::fabric::packet
