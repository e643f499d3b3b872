#include "regatta/model/topo/addresses.h"

#include <gtest/gtest.h>

namespace regatta::topo {
namespace {

TEST(Addresses, GiveTheTwoEndsOfACableNeighboursOfOneNetOfTwo) {
  EXPECT_EQ(address_text(address_of(LinkId{0})), "10.64.0.0");
  EXPECT_EQ(address_text(address_of(LinkId{0}, true)), "10.64.0.1");
  EXPECT_EQ(address_text(address_of(LinkId{40'000})), "10.65.56.128");
  EXPECT_EQ(address_text(address_of(LinkId{(1 << 21) - 1}, true)), "10.127.255.255");
}

TEST(Addresses, TellWhichLinkTheyAreOf) {
  EXPECT_EQ(link_of(address_of(LinkId{40'000}, true)), LinkId{40'000});
  EXPECT_EQ(link_of(0x0a3fffff), std::nullopt);
  EXPECT_EQ(link_of(0x0a800000), std::nullopt);
}

TEST(Addresses, SeedHashesByTheNamesOfClusterAndNode) {
  EXPECT_EQ(hash_seed("lab", "leaf0"), hash_seed("lab", "leaf0"));
  EXPECT_NE(hash_seed("lab", "leaf0"), hash_seed("lab", "leaf1"));
  EXPECT_NE(hash_seed("lab", "leaf0"), hash_seed("lab2", "leaf0"));
  EXPECT_EQ(hash_seed("", ""), 0x2a0c975eU);  // (2166136261 ^ '/') * 16777619 mod 2^32
}

}  // namespace
}  // namespace regatta::topo
