#include "regatta/network/diag/internal/carrier_states.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class CarrierStatesTest : public testing::Test {
 protected:
  std::array<std::uint32_t, 1> link(const std::string& name) const {
    return {fabric::number_of({cable(name), true})};
  }
  LinkId cable(const std::string& name) const {
    return topo::find_link(fabric_.graph, name).value();
  }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  CarrierStates carriers_{fabric_.graph};
};

TEST_F(CarrierStatesTest, RerouteThePathsOfBothSwitchesOfACable) {
  carriers_.add({.link = cable("leaf0-spine0"), .up = false}, 10);
  EXPECT_THAT(carriers_.verdicts(), SizeIs(1));
  EXPECT_TRUE(carriers_.is_rerouted(link("leaf0-spine0")));
  EXPECT_TRUE(carriers_.is_rerouted(link("leaf0-spine1"))) << "leaf0 spreads over fewer links";
  EXPECT_FALSE(carriers_.is_rerouted(link("leaf1-spine1")));
}

TEST_F(CarrierStatesTest, RerouteASwitchUntilItsLastCableIsBack) {
  for (const char* const name : {"leaf0-spine0", "leaf0-spine1"})
    carriers_.add({.link = cable(name), .up = false}, 10);
  carriers_.add({.link = cable("leaf0-spine0"), .up = false}, 10);  // reported by both ends
  carriers_.add({.link = cable("leaf0-spine0"), .up = true}, 20);
  EXPECT_TRUE(carriers_.is_rerouted(link("leaf0-spine0")));
  EXPECT_FALSE(carriers_.is_rerouted(link("leaf1-spine0")));
  carriers_.add({.link = cable("leaf0-spine1"), .up = true}, 30);
  EXPECT_FALSE(carriers_.is_rerouted(link("leaf0-spine0")));
  EXPECT_EQ(carriers_.unsure_until(link("leaf0-spine0")), 30);
  EXPECT_EQ(carriers_.unsure_until(link("leaf1-spine0")), 20);
  EXPECT_EQ(carriers_.unsure_until(link("leaf2-spine1")), 30);
  EXPECT_THAT(carriers_.verdicts(), IsEmpty());
}

// Counters may come from one end while the other end, or the kernel of a lab, knows better.
TEST_F(CarrierStatesTest, ACableHasNoneAsLongAsAnySourceSaysSo) {
  const auto tell = [&](bool up, CarrierSource source, Window routes_back) {
    carriers_.add({.link = cable("leaf0-spine0"), .up = up, .source = source}, routes_back);
  };
  tell(false, CarrierSource::kLab, 10);
  tell(false, CarrierSource::kSwitches, 10);
  tell(true, CarrierSource::kSwitches, 20);
  EXPECT_THAT(carriers_.verdicts(), SizeIs(1));
  tell(true, CarrierSource::kServer, 20);
  EXPECT_THAT(carriers_.verdicts(), SizeIs(1)) << "which had not said that it was lost";
  EXPECT_TRUE(carriers_.is_rerouted(link("leaf0-spine1")));
  EXPECT_EQ(carriers_.unsure_until(link("leaf0-spine0")), -1);
  tell(true, CarrierSource::kLab, 30);
  EXPECT_THAT(carriers_.verdicts(), IsEmpty());
  EXPECT_FALSE(carriers_.is_rerouted(link("leaf0-spine1")));
  EXPECT_EQ(carriers_.unsure_until(link("leaf0-spine0")), 30);
}

TEST_F(CarrierStatesTest, LeaveSwitchesAloneWhenANicHasNoCarrier) {
  const std::uint32_t nic = fabric::number_of({fabric_.nics[0], true});
  carriers_.add({.link = fabric_.nics[0], .up = false}, 10);
  EXPECT_TRUE(carriers_.is_rerouted(std::array{nic}));
  EXPECT_FALSE(carriers_.is_rerouted(link("leaf0-spine0")));
  carriers_.add({.link = fabric_.nics[0], .up = true}, 20);
  EXPECT_EQ(carriers_.unsure_until(std::array{nic}), 20);
  EXPECT_EQ(carriers_.unsure_until(link("leaf0-spine0")), -1);
}

}  // namespace
}  // namespace regatta::diag
