#include "regatta/network/diag/internal/misconfigurations.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MisconfigurationsTest : public testing::Test {
 protected:
  LinkId cable(const std::string& name) const {
    return topo::find_link(fabric_.graph, name).value();
  }
  PortNumber end_a(const std::string& name) const {
    return static_cast<PortNumber>(2 * cable(name).value);
  }
  PortNumber end_b(const std::string& name) const { return end_a(name) + 1; }
  // The ends b of both are in each other's port.
  void swap(const std::string& one, const std::string& other) {
    misconfigurations_.add(HeardPort{end_a(one), end_b(other)}, 10);
    misconfigurations_.add(HeardPort{end_b(other), end_a(one)}, 10);
    misconfigurations_.add(HeardPort{end_a(other), end_b(one)}, 10);
    misconfigurations_.add(HeardPort{end_b(one), end_a(other)}, 10);
  }
  void correct(const std::string& name, Window settled) {
    misconfigurations_.add(HeardPort{end_a(name), end_b(name)}, settled);
    misconfigurations_.add(HeardPort{end_b(name), end_a(name)}, settled);
  }
  void add_addresses(int server, std::vector<std::vector<std::uint32_t>> interfaces,
                     Window settled = 10) {
    misconfigurations_.add(
        ServerAddresses{.server = NodeId{server}, .interfaces = std::move(interfaces)}, settled);
  }
  std::uint32_t address(int server) const {
    return topo::address_of(fabric_.nics[static_cast<std::size_t>(server)]);
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const FaultVerdict& one : misconfigurations_.verdicts())
      all.push_back(to_string(fabric_.graph, one));
    return all;
  }
  std::array<std::uint32_t, 1> link(const std::string& name) const {
    return {fabric::number_of({cable(name), true})};
  }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  Misconfigurations misconfigurations_{fabric_.graph};
};

TEST_F(MisconfigurationsTest, NameBothOfTwoSwappedCables) {
  EXPECT_THAT(texts(), IsEmpty());
  swap("leaf0-spine0", "leaf1-spine1");
  EXPECT_THAT(texts(),
              ElementsAre("cables leaf0-spine0 and leaf1-spine1: swapped, confidence 1.000"));
  EXPECT_TRUE(misconfigurations_.is_affected(link("leaf0-spine0")));
  EXPECT_TRUE(misconfigurations_.is_affected(link("leaf1-spine1")));
  EXPECT_FALSE(misconfigurations_.is_affected(link("leaf0-spine1")));
}

TEST_F(MisconfigurationsTest, EndWithTheSwapOnceItsPathsHaveSettled) {
  swap("leaf0-spine0", "leaf1-spine0");
  correct("leaf0-spine0", 55);
  EXPECT_THAT(texts(), testing::SizeIs(1)) << "the second cable is not back";
  correct("leaf1-spine0", 57);
  EXPECT_THAT(texts(), IsEmpty());
  EXPECT_FALSE(misconfigurations_.is_affected(link("leaf0-spine0")));
  EXPECT_EQ(misconfigurations_.unsure_until(link("leaf0-spine0")), 57);
  EXPECT_EQ(misconfigurations_.unsure_until(link("leaf0-spine1")), 57)
      << "leaf0 spread its flows over fewer links meanwhile";
  EXPECT_EQ(misconfigurations_.unsure_until(link("leaf2-spine1")), -1);
}

TEST_F(MisconfigurationsTest, NameEachTwoNeighborsOfThreeSwappedCables) {
  misconfigurations_.add(HeardPort{end_a("leaf0-spine0"), end_b("leaf1-spine0")}, 10);
  misconfigurations_.add(HeardPort{end_a("leaf1-spine0"), end_b("leaf2-spine0")}, 10);
  misconfigurations_.add(HeardPort{end_a("leaf2-spine0"), end_b("leaf0-spine0")}, 10);
  EXPECT_THAT(texts(), testing::SizeIs(3));
}

TEST_F(MisconfigurationsTest, IgnorePortsThatNoCableHas) {
  misconfigurations_.add(HeardPort{9999, 0}, 10);
  misconfigurations_.add(HeardPort{0, 9999}, 10);
  EXPECT_THAT(texts(), IsEmpty());
}

TEST_F(MisconfigurationsTest, NameTheAddressThatTwoServersHave) {
  add_addresses(0, {{address(0)}});
  add_addresses(4, {{address(4), 0xc0a80001}});
  EXPECT_THAT(texts(), IsEmpty());
  add_addresses(4, {{address(4), address(0)}});
  EXPECT_THAT(texts(), ElementsAre("address 10.64.0.0 of s0.nic0 and s4.nic0: used twice, "
                                   "confidence 1.000"));
  EXPECT_TRUE(misconfigurations_.is_affected(link("s0.nic0-leaf0")));
  EXPECT_TRUE(misconfigurations_.is_affected(link("s4.nic0-leaf2")));
  EXPECT_FALSE(misconfigurations_.is_affected(link("s1.nic0-leaf0")));
  add_addresses(4, {{address(4)}}, 70);
  EXPECT_THAT(texts(), IsEmpty());
  EXPECT_EQ(misconfigurations_.unsure_until(link("s0.nic0-leaf0")), 70);
}

TEST_F(MisconfigurationsTest, NameTheNicThatHasAnotherAddressInsteadOfItsOwn) {
  add_addresses(4, {{address(0)}});
  EXPECT_THAT(texts(), ElementsAre("address 10.64.0.0 of s0.nic0 and s4.nic0: used twice, "
                                   "confidence 1.000"));
}

TEST_F(MisconfigurationsTest, NameTheServerWhereTheAddressIsOnNoNic) {
  add_addresses(4, {{address(4)}, {address(0)}});
  EXPECT_THAT(texts(),
              ElementsAre("address 10.64.0.0 of s0.nic0 and s4: used twice, confidence 1.000"));
  EXPECT_TRUE(misconfigurations_.is_affected(link("s4.nic0-leaf2")))
      << "packets to any NIC of it may end elsewhere";
}

}  // namespace
}  // namespace regatta::diag
