#include "regatta/network/lab/internal/routing.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "regatta/model/topo/cluster_yaml.h"

namespace regatta::lab {
namespace {

class Routing : public testing::Test {
 protected:
  // Four servers of one NIC, two a leaf.
  void make(const std::string& fabric) {
    const auto cluster = topo::parse_cluster(
        "name: test\n"
        "server_types:\n"
        "  a: {devices: {count: 1, type: cpu}, intra: {kind: shm}, nics: {count: 1, rate: 1Gbps}}\n"
        "fabric: " +
            fabric + "\nservers: {count: 4, type: a}\n",
        "test.yaml");
    ASSERT_TRUE(cluster) << cluster.error().message;
    const auto made = make_blueprint(*cluster, 2);
    ASSERT_TRUE(made) << made.error().message;
    blueprint_ = *made;
  }

  // The neighbours that `node` sends to for `server`, with the named cables down.
  std::vector<std::string> next(const std::string& node, std::size_t server,
                                const std::vector<std::string>& broken) const {
    std::vector<bool> down;
    for (const Cable& cable : blueprint_.cables)
      down.push_back(std::find(broken.begin(), broken.end(), cable.name) != broken.end());
    EXPECT_EQ(std::count(down.begin(), down.end(), true), static_cast<long>(broken.size()));
    const auto left = hops_left(blueprint_, down);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Route& route = blueprint_.routes[i];
      if (blueprint_.nodes[route.node.index()].name != node) continue;
      if (route.destination != blueprint_.nic_addresses[server][0]) continue;
      for (const Hop& hop : left[i]) {
        const Cable& cable = blueprint_.cables[hop.cable.index()];
        const NodeId far = cable.a.node == route.node ? cable.b.node : cable.a.node;
        names.push_back(blueprint_.nodes[far.index()].name);
      }
    }
    return names;
  }

  Blueprint blueprint_;
};

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kTwoTiers =
    "{tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: 1Gbps}";

TEST_F(Routing, KeepsEveryHopWhenNothingIsDown) {
  make(kTwoTiers);
  EXPECT_THAT(next("leaf0", 3, {}), ElementsAre("spine0", "spine1"));
}

TEST_F(Routing, WithdrawsTheSpineThatLostTheLeafFromAllOtherLeaves) {
  make(kTwoTiers);
  EXPECT_THAT(next("leaf0", 3, {"leaf1-spine0"}), ElementsAre("spine1"));
  EXPECT_THAT(next("leaf1", 0, {"leaf1-spine0"}), ElementsAre("spine1"));
  EXPECT_THAT(next("spine0", 3, {"leaf1-spine0"}), IsEmpty());
  EXPECT_THAT(next("spine0", 0, {"leaf1-spine0"}), ElementsAre("leaf0"));
}

TEST_F(Routing, WithdrawsARouteWithoutAnyPath) {
  make(kTwoTiers);
  EXPECT_THAT(next("leaf0", 3, {"leaf1-spine0", "leaf1-spine1"}), IsEmpty());
  EXPECT_THAT(next("leaf0", 3, {"leaf0-spine0", "leaf1-spine1"}), IsEmpty());  // no valley
  EXPECT_THAT(next("leaf0", 3, {"s3.nic0-leaf1"}), IsEmpty());
  EXPECT_THAT(next("leaf0", 2, {"s3.nic0-leaf1"}), ElementsAre("spine0", "spine1"));
}

TEST_F(Routing, LeavesServersTheirHops) {
  make(kTwoTiers);
  EXPECT_THAT(next("s0", 3, {"s3.nic0-leaf1"}), ElementsAre("leaf0"));
}

TEST_F(Routing, LooksThroughThreeTiers) {
  make(
      "{tiers: [leaf, spine, super-spine], servers_per_leaf: 2, leaves_per_group: 1, spines: 2, "
      "super_spines: 4, uplink: 1Gbps}");
  EXPECT_THAT(next("leaf0", 3, {}), ElementsAre("spine0", "spine1"));
  ASSERT_FALSE(next("super0", 3, {}).empty());
  const std::string far_spine = next("super0", 3, {})[0];
  const std::string cable = "leaf1-" + far_spine;
  EXPECT_THAT(next("super0", 3, {cable}), IsEmpty());
  EXPECT_THAT(next("leaf0", 3, {cable}), testing::SizeIs(1));
}

}  // namespace
}  // namespace regatta::lab
