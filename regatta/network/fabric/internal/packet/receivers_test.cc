#include "regatta/network/fabric/internal/packet/receivers.h"

#include <gtest/gtest.h>

namespace regatta::fabric::packet {
namespace {

Packet packet_on(std::uint32_t connection, std::uint32_t sequence) {
  Packet packet{};
  packet.connection = connection;
  packet.sequence = sequence;
  return packet;
}

TEST(PacketReceivers, CountReorderedPacketsOfEachConnectionForItself) {
  Receivers receivers(2);
  receivers.receive(packet_on(0, 0));
  receivers.receive(packet_on(1, 0));
  EXPECT_EQ(receivers.reordered(), 0U);
  for (const std::uint32_t sequence : {2U, 3U, 1U})
    receivers.receive(packet_on(1, sequence));
  EXPECT_EQ(receivers.reordered(), 1U);
  EXPECT_EQ(receivers.buffer_peak(), 2U);
  receivers.receive(packet_on(0, 1));
  EXPECT_EQ(receivers.reordered(), 1U);
}

}  // namespace
}  // namespace regatta::fabric::packet
