#include "regatta/runtime/comm/hello.h"

#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

const Hello kHello{.rank = 3,
                   .world_size = 8,
                   .connection = 2,
                   .connections = 5,
                   .meeting = 0x1234567890abcdef,
                   .token = "secret"};

TEST(Hello, ComesBackAsItWasAndWaitsForMissingBytes) {
  const std::vector<std::byte> bytes = encode_hello(kHello);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto part = decode_hello(std::span(bytes).first(length));
    ASSERT_TRUE(part) << length;
    EXPECT_FALSE(part->has_value()) << length;
  }
  const auto hello = decode_hello(bytes);
  ASSERT_TRUE(hello && hello->has_value());
  EXPECT_EQ((*hello)->rank, 3U);
  EXPECT_EQ((*hello)->world_size, 8U);
  EXPECT_EQ((*hello)->connection, 2U);
  EXPECT_EQ((*hello)->connections, 5U);
  EXPECT_EQ((*hello)->meeting, 0x1234567890abcdefU);
  EXPECT_EQ((*hello)->token, "secret");
}

TEST(Hello, KnowsAStrangerByItsFirstBytes) {
  const std::string text = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(decode_hello(std::as_bytes(std::span(text))).error().message,
            "it does not speak this protocol");
  std::vector<std::byte> bytes = encode_hello(kHello);
  bytes[8] = std::byte{9};
  EXPECT_EQ(decode_hello(bytes).error().message, "it speaks another version of this protocol");
  bytes = encode_hello(kHello);
  bytes[kHelloBytes - 2] = std::byte{1};
  EXPECT_EQ(decode_hello(bytes).error().message, "its job token is too long");
}

TEST(Hello, SurvivesRandomBytes) {
  std::mt19937 random(2);
  const std::vector<std::byte> good = encode_hello(kHello);
  for (int round = 0; round < 50000; ++round) {
    std::vector<std::byte> bytes = good;
    bytes.resize(random() % 100);
    for (std::byte& byte : bytes)
      if (random() % 4 == 0) byte = static_cast<std::byte>(random());
    const auto hello = decode_hello(bytes);
    if (hello && hello->has_value()) {
      EXPECT_LE((*hello)->token.size(), kTokenBytesMax);
    }
    (void)decode_reply(bytes);
  }
}

TEST(Endpoint, ComesBackAsItWas) {
  const auto endpoint = parse_endpoint(format_endpoint({.address = "10.0.0.1",
                                                        .port = 4711,
                                                        .unix_name = "name",
                                                        .link_rate = {1.25e9},
                                                        .has_rdma = true,
                                                        .server = "a\tb"}));
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->address, "10.0.0.1");
  EXPECT_EQ(endpoint->port, 4711);
  EXPECT_EQ(endpoint->unix_name, "name");
  EXPECT_EQ(endpoint->link_rate, BytesPerSecond{1.25e9});
  EXPECT_TRUE(endpoint->has_rdma);
  EXPECT_EQ(endpoint->server, "a\tb");
  for (const char* text :
       {"", "x", "regatta-coll-3\t10.0.0.1\t99999\tn\t0\ttcp\ts",
        "regatta-coll-3\t10.0.0.1\t1x\tn\t0\ttcp\ts", "regatta-coll-3\t10.0.0.1\t1\tn\t-1\ttcp\ts",
        "regatta-coll-3\t10.0.0.1\t1\tn\t18446744073709551615\ttcp\ts",
        "regatta-coll-3\t10.0.0.1\t1\tn\t0\tipx\ts", "regatta-coll-3\t10.0.0.1\t1\tn\t0\ttcp"})
    EXPECT_FALSE(parse_endpoint(text)) << text;
}

}  // namespace
}  // namespace regatta::comm
