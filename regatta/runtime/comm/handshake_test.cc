#include "regatta/runtime/comm/handshake.h"

#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

const RankHandshake kHandshake{.rank = 3,
                               .world_size = 8,
                               .connection = 2,
                               .connections = 5,
                               .rendezvous_id = 0x1234567890abcdef,
                               .token = "secret"};

TEST(RankHandshake, ComesBackAsItWasAndWaitsForMissingBytes) {
  const std::vector<std::byte> bytes = encode_handshake(kHandshake);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto part = decode_handshake(std::span(bytes).first(length));
    ASSERT_TRUE(part) << length;
    EXPECT_FALSE(part->has_value()) << length;
  }
  const auto handshake = decode_handshake(bytes);
  ASSERT_TRUE(handshake && handshake->has_value());
  EXPECT_EQ((*handshake)->rank, 3U);
  EXPECT_EQ((*handshake)->world_size, 8U);
  EXPECT_EQ((*handshake)->connection, 2U);
  EXPECT_EQ((*handshake)->connections, 5U);
  EXPECT_EQ((*handshake)->rendezvous_id, 0x1234567890abcdefU);
  EXPECT_EQ((*handshake)->token, "secret");
}

TEST(RankHandshake, KnowsAStrangerByItsFirstBytes) {
  const std::string text = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(decode_handshake(std::as_bytes(std::span(text))).error().message,
            "it does not speak this protocol");
  std::vector<std::byte> bytes = encode_handshake(kHandshake);
  bytes[8] = std::byte{9};
  EXPECT_EQ(decode_handshake(bytes).error().message, "it speaks another version of this protocol");
  bytes = encode_handshake(kHandshake);
  bytes[kHandshakeBytes - 2] = std::byte{1};
  EXPECT_EQ(decode_handshake(bytes).error().message, "its job token is too long");
}

TEST(RankHandshake, SurvivesRandomBytes) {
  std::mt19937 random(2);
  const std::vector<std::byte> good = encode_handshake(kHandshake);
  for (int round = 0; round < 50000; ++round) {
    std::vector<std::byte> bytes = good;
    bytes.resize(random() % 100);
    for (std::byte& byte : bytes)
      if (random() % 4 == 0) byte = static_cast<std::byte>(random());
    const auto handshake = decode_handshake(bytes);
    if (handshake && handshake->has_value()) {
      EXPECT_LE((*handshake)->token.size(), kTokenBytesMax);
    }
    (void)decode_handshake_reply(bytes);
  }
}

TEST(PeerEndpoint, ComesBackAsItWas) {
  const auto endpoint = parse_endpoint(format_endpoint({.address = "10.0.0.1",
                                                        .port = 4711,
                                                        .unix_name = "name",
                                                        .link_rate = {1.25e9},
                                                        .has_rdma = true,
                                                        .domain = "rack 1",
                                                        .server = "a\tb"}));
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->address, "10.0.0.1");
  EXPECT_EQ(endpoint->port, 4711);
  EXPECT_EQ(endpoint->unix_name, "name");
  EXPECT_EQ(endpoint->link_rate, BytesPerSecond{1.25e9});
  EXPECT_TRUE(endpoint->has_rdma);
  EXPECT_EQ(endpoint->domain, "rack 1");
  EXPECT_EQ(endpoint->server, "a\tb");
  for (const char* text : {"", "x", "regatta-coll-4\t10.0.0.1\t99999\tn\t0\ttcp\td\ts",
                           "regatta-coll-4\t10.0.0.1\t1x\tn\t0\ttcp\td\ts",
                           "regatta-coll-4\t10.0.0.1\t1\tn\t-1\ttcp\td\ts",
                           "regatta-coll-4\t10.0.0.1\t1\tn\t18446744073709551615\ttcp\td\ts",
                           "regatta-coll-4\t10.0.0.1\t1\tn\t0\tipx\td\ts",
                           "regatta-coll-4\t10.0.0.1\t1\tn\t0\ttcp\td"})
    EXPECT_FALSE(parse_endpoint(text)) << text;
}

}  // namespace
}  // namespace regatta::comm
