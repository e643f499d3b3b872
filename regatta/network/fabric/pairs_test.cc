#include <set>

#include <gtest/gtest.h>

#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

TEST(NicPairs, GiveEveryConnectionOfAPairAnotherPort) {
  NicPairs pairs{.connections = 64};
  pairs.add(LinkId{0}, LinkId{1});
  pairs.add(LinkId{1}, LinkId{0});
  std::set<FiveTuple> all;
  for (std::uint32_t pair = 0; pair < 2; ++pair)
    for (std::uint32_t connection = 0; connection < 64; ++connection)
      all.insert(pairs.tuple(pair, connection));
  EXPECT_EQ(all.size(), 128U);
  EXPECT_EQ(all.begin()->to_port, kRoceV2Port);
  EXPECT_EQ(pairs.tuple(1, 3).from, topo::address_of(LinkId{1}));
  EXPECT_GE(pairs.tuple(1, 3).from_port, kFirstFreePort);
}

}  // namespace
}  // namespace regatta::fabric
