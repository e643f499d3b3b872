#include "regatta/network/fabric/internal/packet/outage_schedule.h"

#include <gtest/gtest.h>

namespace regatta::fabric::packet {
namespace {

Outage outage_at(double seconds, std::vector<LinkId> dead, std::vector<LinkId> back) {
  return {.at = {seconds},
          .dead = std::move(dead),
          .back = std::move(back),
          .routes = {},
          .stuck = {},
          .freed = {}};
}

TEST(PacketOutageSchedule, KeepsAllLinksUpWithoutOutages) {
  const OutageSchedule schedule({}, 4);
  EXPECT_TRUE(schedule.is_over());
  EXPECT_EQ(schedule.next_at({}), kNever);
  EXPECT_TRUE(schedule.is_up(3));
  EXPECT_FALSE(schedule.is_removed(3));
}

TEST(PacketOutageSchedule, RemovesDeadLinksThatNoLaterOutageBringsBack) {
  OutageSchedule schedule(
      {outage_at(1e-9, {LinkId{0}, LinkId{1}}, {}), outage_at(2e-9, {}, {LinkId{0}})}, 6);
  EXPECT_TRUE(schedule.is_up(0));
  schedule.apply(1000);
  EXPECT_EQ(schedule.last_at(), 1000);
  for (const std::uint32_t link : {0U, 1U, 2U, 3U}) {
    EXPECT_FALSE(schedule.is_up(link));
    EXPECT_EQ(schedule.is_removed(link), link >= 2);
  }
  EXPECT_TRUE(schedule.is_up(4));
  EXPECT_EQ(schedule.apply(2000).back.front(), LinkId{0});
  EXPECT_TRUE(schedule.is_up(0));
  EXPECT_TRUE(schedule.is_removed(2));
  EXPECT_TRUE(schedule.is_over());
}

TEST(PacketOutageSchedule, CountsTimeAsThePacketsDo) {
  const OutageSchedule schedule({outage_at(1e-9, {}, {})}, 2);
  EXPECT_EQ(schedule.next_at({.now = 100, .skipped = 600}), 400);
  EXPECT_EQ(schedule.next_at({.now = 500, .skipped = 600}), 500);
}

}  // namespace
}  // namespace regatta::fabric::packet
