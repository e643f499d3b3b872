#include "regatta/base/os/netlink.h"

#include <thread>

#include <gtest/gtest.h>

#include "regatta/base/os/process.h"

namespace regatta::os {
namespace {

// Two namespaces with a cable between them, made by a thread of its own so that the test's thread
// stays where it is. Skips when namespaces are not allowed.
struct TwoEnds {
  UniqueFd space_a;
  UniqueFd space_b;

  static Result<TwoEnds> make() {
    TwoEnds ends;
    Status status;
    std::thread([&] {
      status = enter_new_network_namespace();
      if (status) ends.space_a = *open_network_namespace();
      if (status) status = enter_new_network_namespace();
      if (status) ends.space_b = *open_network_namespace();
    }).join();
    if (!status) return status.error();
    return ends;
  }

  Result<Netlink> open(const UniqueFd& space) const {
    REGATTA_TRY(scope, NetworkNamespaceScope::enter(space));
    return Netlink::open();
  }
};

#define MAKE_ENDS_OR_SKIP(ends)                                                 \
  auto ends = TwoEnds::make();                                                  \
  if (!ends) GTEST_SKIP() << "no network namespaces: " << ends.error().message; \
  static_cast<void>(0)

TEST(Netlink, CablesTwoNamespaces) {
  MAKE_ENDS_OR_SKIP(ends);
  auto a = ends->open(ends->space_a);
  auto b = ends->open(ends->space_b);
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(a->add_veth("nic0", "port0", ends->space_b));
  EXPECT_EQ(a->add_veth("nic0", "port1", ends->space_b).error().code, Code::kConflict);
  ASSERT_TRUE(a->set_sizes("nic0", 9000, 16384));
  ASSERT_TRUE(a->add_address("nic0", "10.77.0.0", 31));
  ASSERT_TRUE(a->set_up("nic0", true));
  EXPECT_FALSE(a->interface("nic0")->carrier);
  ASSERT_TRUE(b->set_up("port0", true));
  EXPECT_TRUE(a->interface("nic0")->carrier);
  EXPECT_EQ(a->interfaces()->size(), 2U);  // and the loopback
  EXPECT_EQ(b->interface("nic0").error().code, Code::kNotFound);
}

TEST(Netlink, RoutesAndShapesAreReplacedByTheSecondCall) {
  MAKE_ENDS_OR_SKIP(ends);
  auto a = ends->open(ends->space_a);
  ASSERT_TRUE(a);
  ASSERT_TRUE(a->add_veth("nic0", "port0", ends->space_b));
  ASSERT_TRUE(a->add_veth("nic1", "port1", ends->space_b));
  std::vector<NextHop> hops;
  for (const std::string& digit : {std::string("0"), std::string("1")}) {
    const std::string nic = "nic" + digit;
    ASSERT_TRUE(a->add_address(nic, "10.77." + digit + ".0", 31));
    ASSERT_TRUE(a->set_up(nic, true));
    hops.push_back({a->interface(nic)->index, "10.77." + digit + ".1"});
  }
  ASSERT_TRUE(a->set_route("10.78.0.1", hops));
  ASSERT_TRUE(a->set_route("10.78.0.1", {hops[0]}));
  EXPECT_TRUE(a->remove_route("10.78.0.1"));
  EXPECT_TRUE(a->remove_route("10.78.0.1"));  // there is none
  const auto strange = a->set_route("10.78.0.1", {{hops[0].interface_index, "10.99.0.1"}});
  ASSERT_FALSE(strange);
  EXPECT_NE(strange.error().message.find("route to 10.78.0.1"), std::string::npos);
  const EgressShape shape{BytesPerSecond{12.5e6}, Bytes{65536}, Bytes{500000}};
  ASSERT_TRUE(a->set_shape("nic0", shape));
  ASSERT_TRUE(a->set_shape("nic0", shape));
  ASSERT_TRUE(a->set_shape("nic0", {BytesPerSecond{50e9}, Bytes{65536}, Bytes{500000}}));
  EXPECT_EQ(a->set_shape("nic9", shape).error().code, Code::kNotFound);
}

TEST(NetworkNamespace, IsLeftAgainAndHasACookieOfItsOwn) {
  MAKE_ENDS_OR_SKIP(ends);
  const auto before = network_namespace_cookie();
  {
    auto scope = NetworkNamespaceScope::enter(ends->space_a);
    ASSERT_TRUE(scope);
    EXPECT_NE(*network_namespace_cookie(), *before);
  }
  EXPECT_EQ(*network_namespace_cookie(), *before);
  EXPECT_NE(*namespace_inode(ends->space_a), *namespace_inode(ends->space_b));
}

TEST(CarrierWatch, TellsLossAndReturnOfTheCarrier) {
  MAKE_ENDS_OR_SKIP(ends);
  auto a = ends->open(ends->space_a);
  auto b = ends->open(ends->space_b);
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(a->add_veth("nic0", "port0", ends->space_b));
  ASSERT_TRUE(a->set_up("nic0", true));
  ASSERT_TRUE(b->set_up("port0", true));
  auto scope = NetworkNamespaceScope::enter(ends->space_a);
  ASSERT_TRUE(scope);
  auto watch = CarrierWatch::open();
  ASSERT_TRUE(watch);
  ASSERT_EQ(watch->state().size(), 1U);
  EXPECT_TRUE(watch->state()[0].up);
  EXPECT_FALSE(watch->next(Seconds{0})->has_value());
  for (const bool up : {false, true}) {
    ASSERT_TRUE(b->set_up("port0", up));
    const auto event = watch->next(Seconds{5});
    ASSERT_TRUE(event && event->has_value());
    EXPECT_EQ((*event)->interface, "nic0");
    EXPECT_EQ((*event)->up, up);
  }
}

}  // namespace
}  // namespace regatta::os
