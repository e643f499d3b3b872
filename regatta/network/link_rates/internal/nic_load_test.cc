#include "regatta/network/link_rates/internal/nic_load.h"

#include <gtest/gtest.h>

#include "regatta/network/link_rates/test_rates.h"

namespace regatta::link_rates {
namespace {

TEST(NicLoad, IsTheTrafficWithoutTheTrains) {
  NicLoad load;
  EXPECT_FALSE(load.add(1000, 0, {0}));
  load.begin_train();
  EXPECT_FALSE(load.add(50'000, 0, {0.3}));  // a train is on its way
  load.end_train({60'000}, {0}, {0.31});
  EXPECT_FALSE(load.add(61'000, 0, {0.32}));  // perhaps written before
  EXPECT_TRUE(load.add(71'000, 0, {0.5}));
  EXPECT_NEAR(load.rate().value, 10'000 / 0.5, 1);
  EXPECT_EQ(load.since(), Seconds{0});
}

TEST(NicLoad, BeginsAnewWithTheCounters) {
  NicLoad load;
  load.add(1'000'000, 0, {0});
  EXPECT_FALSE(load.add(10, 0, {1}));
  EXPECT_TRUE(load.add(10, 500, {2}));
  EXPECT_NEAR(load.rate().value, 500, 1);
}

class LinksOfTraffic : public testing::Test {
 protected:
  std::vector<std::string> between(const std::vector<std::string>& cables) const {
    std::vector<LinkId> nics;
    for (const std::string& cable : cables)
      nics.push_back(LinkId{static_cast<int>(
          link_called(fabric_.graph, cable, cable.substr(0, cable.find('.'))) / 2)});
    std::vector<std::string> names;
    const auto marked = links_of_traffic(fabric_.graph, fabric_.routes, nics);
    for (std::uint32_t link = 0; link < marked.size(); ++link)
      if (marked[link] && fabric_.graph.links[link / 2].a_nic < 0)
        names.push_back(fabric_.graph.links[link / 2].name + (link % 2 == 0 ? " up" : " down"));
    return names;
  }
  const Fabric fabric_{{.servers = 6, .servers_per_leaf = 2, .spines = 2}};
};

TEST_F(LinksOfTraffic, StaysBelowTheLeafOfBoth) {
  EXPECT_TRUE(between({"s0.nic0-leaf0", "s1.nic0-leaf0"}).empty());
}

TEST_F(LinksOfTraffic, MayTakeAllPathsBetweenTwoLeaves) {
  EXPECT_EQ(between({"s0.nic0-leaf0", "s2.nic0-leaf1"}),
            (std::vector<std::string>{"leaf0-spine0 up", "leaf0-spine0 down", "leaf0-spine1 up",
                                      "leaf0-spine1 down", "leaf1-spine0 up", "leaf1-spine0 down",
                                      "leaf1-spine1 up", "leaf1-spine1 down"}));
}

TEST_F(LinksOfTraffic, MayGoAnywhereWhereNoPeerIsKnown) {
  EXPECT_EQ(between({"s0.nic0-leaf0"}).size(), 2 * 6U);
}

}  // namespace
}  // namespace regatta::link_rates
