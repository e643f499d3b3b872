#include "regatta/network/fabric/internal/packet/lost_packets.h"

#include <gtest/gtest.h>

namespace regatta::fabric::packet {
namespace {

Packet packet_of_flow(std::uint32_t flow) {
  Packet packet{};
  packet.flow = flow;
  return packet;
}

TEST(PacketLostPackets, ReuseThePlaceOfAConsumedPacket) {
  LostPackets lost;
  const std::uint32_t first = lost.keep(packet_of_flow(1));
  const std::uint32_t second = lost.keep(packet_of_flow(2));
  EXPECT_NE(first, second);
  EXPECT_EQ(lost.consume(first).flow, 1U);
  EXPECT_EQ(lost.keep(packet_of_flow(3)), first);
  EXPECT_EQ(lost.consume(second).flow, 2U);
  EXPECT_EQ(lost.consume(first).flow, 3U);
}

TEST(PacketLostPackets, ReturnParkedPacketsOnceWithTheirTimes) {
  LostPackets lost;
  lost.park(packet_of_flow(1), 10);
  lost.park(packet_of_flow(2), 20);
  std::uint32_t flow = 0;
  lost.unpark([&](std::uint32_t place, Picoseconds lost_at) {
    EXPECT_EQ(lost.consume(place).flow, ++flow);
    EXPECT_EQ(lost_at, 10 * flow);
  });
  EXPECT_EQ(flow, 2U);
  lost.unpark([](std::uint32_t, Picoseconds) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace regatta::fabric::packet
