#include "regatta/network/lab/internal/blueprint.h"

#include <set>

#include <gmock/gmock.h>

#include "regatta/model/topo/cluster_yaml.h"

namespace regatta::lab {
namespace {

topo::Cluster parse(const std::string& fabric, int servers, int nics) {
  const auto cluster = topo::parse_cluster(
      "name: test\n"
      "server_types:\n"
      "  a:\n"
      "    devices: {count: 2, type: cpu}\n"
      "    intra: {kind: shm}\n"
      "    nics: {count: " +
          std::to_string(nics) + ", rate: 200Mbps}\n" + "fabric: " + fabric +
          "\nservers: {count: " + std::to_string(servers) + ", type: a}\n",
      "test.yaml");
  EXPECT_TRUE(cluster) << cluster.error().message;
  return *cluster;
}

const Route& route(const Blueprint& blueprint, const std::string& node,
                   const std::string& destination) {
  for (const Route& entry : blueprint.routes) {
    if (blueprint.nodes[entry.node.index()].name == node && entry.destination == destination) {
      return entry;
    }
  }
  static const Route none;
  return none;
}

TEST(Blueprint, GivesEveryPortAnAddressOfItsOwn) {
  const auto cluster =
      parse("{tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: 1Gbps}", 4, 1);
  const auto blueprint = make_blueprint(cluster, 2);
  ASSERT_TRUE(blueprint);
  EXPECT_EQ(blueprint->nodes.size(), 8U);
  ASSERT_EQ(blueprint->cables.size(), 8U);
  std::set<std::string> addresses;
  std::set<std::uint32_t> seeds;
  for (const Cable& cable : blueprint->cables) {
    addresses.insert(cable.a.address);
    addresses.insert(cable.b.address);
  }
  for (const BlueprintNode& node : blueprint->nodes)
    seeds.insert(node.hash_seed);
  EXPECT_EQ(addresses.size(), 16U);
  EXPECT_EQ(seeds.size(), 8U);
  EXPECT_THAT(blueprint->nic_addresses[2], testing::ElementsAre("10.64.0.4"));
  EXPECT_EQ(blueprint->cables[2].a.interface, "nic0");
  EXPECT_EQ(blueprint->cables[2].b.interface, "port0");
}

TEST(Blueprint, RoutesOverAllEqualPaths) {
  const auto cluster =
      parse("{tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: 1Gbps}", 4, 1);
  const auto blueprint = make_blueprint(cluster, 2);
  ASSERT_TRUE(blueprint);
  EXPECT_EQ(route(*blueprint, "s0", "10.64.0.4").hops.size(), 1U);
  EXPECT_EQ(route(*blueprint, "leaf0", "10.64.0.4").hops.size(), 2U);
  EXPECT_EQ(route(*blueprint, "spine1", "10.64.0.4").hops.size(), 1U);
  EXPECT_EQ(route(*blueprint, "leaf1", "10.64.0.4").hops.size(), 0U);  // a neighbour
}

TEST(Blueprint, KeepsTrafficOnItsRail) {
  const auto cluster = parse(
      "{tiers: [leaf, spine], rails: 2, servers_per_leaf: 1, spines: 2, uplink: 1Gbps}", 2, 4);
  const auto blueprint = make_blueprint(cluster, 2);
  ASSERT_TRUE(blueprint);
  for (std::size_t nic = 0; nic < 4; ++nic) {
    const Route& entry = route(*blueprint, "s0", blueprint->nic_addresses[1][nic]);
    ASSERT_EQ(entry.hops.size(), 1U);
    EXPECT_EQ(entry.hops[0].interface, "nic" + std::to_string(nic));
  }
}

TEST(Blueprint, NicsOfAServerWithoutAFabricHaveNoCable) {
  const auto cluster = topo::parse_cluster(
      "name: one\n"
      "server_types:\n"
      "  a: {devices: {count: 2, type: cpu}, intra: {kind: shm}, nics: {count: 1, rate: 1Gbps}}\n"
      "servers: {count: 1, type: a}\n",
      "test.yaml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  const auto blueprint = make_blueprint(*cluster, 2);
  ASSERT_TRUE(blueprint);
  EXPECT_EQ(blueprint->nodes.size(), 1U);
  EXPECT_TRUE(blueprint->cables.empty());
  EXPECT_THAT(blueprint->nic_addresses, testing::ElementsAre(testing::IsEmpty()));
}

TEST(Blueprint, SharesTheCoresAmongDevicesThatNameNoShare) {
  auto cluster = parse("{tiers: [leaf], servers_per_leaf: 4}", 4, 1);
  EXPECT_DOUBLE_EQ(make_blueprint(cluster, 2)->nodes[0].cpu_shares[1], 0.2);
  EXPECT_DOUBLE_EQ(make_blueprint(cluster, 64)->nodes[0].cpu_shares[1], 1.0);
  cluster.server_types.begin()->second.device.cpu_share = 0.15;
  EXPECT_DOUBLE_EQ(make_blueprint(cluster, 2)->nodes[0].cpu_shares[1], 0.15);
}

TEST(Blueprint, DescribesWhatIsBuiltAndNothingElse) {
  auto cluster = parse("{tiers: [leaf], servers_per_leaf: 4}", 4, 1);
  const std::string before = make_blueprint(cluster, 2)->description;
  cluster.server_types.begin()->second.device.memory = Bytes{1};
  EXPECT_EQ(make_blueprint(cluster, 2)->description, before);
  cluster.server_types.begin()->second.nic_rate = BytesPerSecond{1e6};
  EXPECT_NE(make_blueprint(cluster, 2)->description, before);
}

TEST(Blueprint, RefusesRealServersAndNamesThatAreNoFileNames) {
  auto cluster = parse("{tiers: [leaf], servers_per_leaf: 4}", 4, 1);
  cluster.servers[1].address = "10.0.0.1:7000";
  auto blueprint = make_blueprint(cluster, 2);
  ASSERT_FALSE(blueprint);
  EXPECT_EQ(blueprint.error().code, Code::kInvalidInput);
  EXPECT_EQ(blueprint.error().message,
            "server s1: has the address 10.0.0.1:7000, so it is real; the lab emulates only "
            "servers without an address");
  cluster.servers[1].address.clear();
  for (const std::string name : {"", "..", "a/b", "a b"}) {
    cluster.name = name;
    EXPECT_EQ(make_blueprint(cluster, 2).error().code, Code::kInvalidInput) << name;
  }
}

TEST(Shape, HoldsOnePacketAndFortyMilliseconds) {
  using namespace literals;
  const os::EgressShape slow = shape_for(100_Mbps);
  EXPECT_EQ(slow.burst.value, 10 * 1024);
  EXPECT_GT(slow.burst.value, kMtu);
  EXPECT_EQ(slow.queue.value, 500000);
  EXPECT_EQ(shape_for(10_Gbps).burst.value, 125000);
}

}  // namespace
}  // namespace regatta::lab
