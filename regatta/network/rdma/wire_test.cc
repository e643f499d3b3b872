#include "regatta/network/rdma/wire.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::rdma {
namespace {

const QueueCard kCard{.gid = {1, 2, 3}, .mtu = 4096, .slots = 64, .numbers = {17, 18, 0xfffffe}};

TEST(Gid, HoldsTheAddress) {
  EXPECT_EQ(*gid_of("10.1.2.3"), (Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3}));
  EXPECT_EQ(*gid_of("fe80::1"), (Gid{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(gid_of("rank0").error().message, "'rank0' is no IP address in numbers");
}

TEST(QueueCard, ComesBackAsItWas) {
  const auto card = decode_card(encode_card(kCard));
  ASSERT_TRUE(card);
  EXPECT_EQ(card->gid, kCard.gid);
  EXPECT_EQ(card->mtu, kCard.mtu);
  EXPECT_EQ(card->slots, kCard.slots);
  EXPECT_EQ(card->numbers, kCard.numbers);
}

TEST(QueueCard, RefusesWhatIsNone) {
  const std::vector<std::byte> good = encode_card(kCard);
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(decode_card(std::span(good).first(length))) << length;
  QueueCard wrong = kCard;
  wrong.numbers.clear();
  EXPECT_FALSE(decode_card(encode_card(wrong)));
  wrong = kCard;
  wrong.mtu = 1 << 20;
  EXPECT_FALSE(decode_card(encode_card(wrong)));
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes = good;
    bytes.resize(random() % 80);
    for (std::byte& byte : bytes)
      if (random() % 4 == 0) byte = static_cast<std::byte>(random());
    const auto card = decode_card(bytes);
    if (card) {
      EXPECT_LE(card->numbers.size(), kQueuePairsMax);
    }
  }
}

TEST(RemotePlace, ComesBackAsItWas) {
  const RemotePlace place =
      decode_place(encode_place({.address = 0x123456789abcdef0, .key = 77, .landing = 0xffffffff}));
  EXPECT_EQ(place.address, 0x123456789abcdef0U);
  EXPECT_EQ(place.key, 77U);
  EXPECT_EQ(place.landing, 0xffffffffU);
}

TEST(FlowLabel, GivesThePortThatItWasMadeFrom) {
  for (std::uint32_t port = 0xC001; port <= 0xFFFF; ++port) {
    const std::uint32_t label = flow_label_of(static_cast<std::uint16_t>(port));
    ASSERT_GT(label, 0U);
    ASSERT_LT(label, 1U << 20);
    ASSERT_EQ(udp_source_port_of(label), port);
  }
  EXPECT_EQ(udp_source_port_of(0xfffff), 0xC000 | (0x3fff ^ 0x3f));  // the upper bits fold in
}

TEST(SourcePorts, AreDistinctAndInRange) {
  for (const std::uint32_t seed : {0U, 1U, 0x3ffeU, 0xffffffffU}) {
    const auto ports = choose_source_ports(256, seed);
    EXPECT_EQ(std::set<std::uint16_t>(ports.begin(), ports.end()).size(), 256U);
    for (const std::uint16_t port : ports)
      EXPECT_GT(port, 0xC000);
    EXPECT_NE(ports, choose_source_ports(256, seed + 1));
  }
}

// Seen on the wire: Linux 6.1.
TEST(SoftRoce, SendsFromAPortThatItsQueuePairDetermines) {
  EXPECT_EQ(udp_port_of_queue(24), 51891);
  for (std::uint32_t number = 16; number < 100000; ++number)
    ASSERT_GE(udp_port_of_queue(number), 0xC000);
}

}  // namespace
}  // namespace regatta::rdma
