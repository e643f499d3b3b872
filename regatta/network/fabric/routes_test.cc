#include "regatta/network/fabric/routes.h"

#include <map>
#include <optional>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::fabric {
namespace {

std::vector<std::string> names_of(const topo::Graph& graph,
                                  const std::optional<std::vector<std::uint32_t>>& path) {
  std::vector<std::string> names;
  if (!path) return {"none"};
  for (const std::uint32_t link : *path)
    names.push_back(topo::directed_link_name(graph, link));
  return names;
}

TEST(Routes, GoUpToASpineAndDownAgain) {
  const TestFabric fabric(8, 2, {1e9});
  const auto path = fabric.routes.path(fabric.nics[0], fabric.nics[5], fabric.d_mod_k.to(5));
  EXPECT_THAT(names_of(fabric.graph, path),
              testing::ElementsAre("s0.nic0-leaf0 up", "leaf0-spine1 up", "leaf2-spine1 down",
                                   "s5.nic0-leaf2 down"));
}

TEST(Routes, StayBelowALeafAndNowhereToTheSameNic) {
  const TestFabric fabric(8, 2, {1e9});
  EXPECT_THAT(names_of(fabric.graph,
                       fabric.routes.path(fabric.nics[0], fabric.nics[1], fabric.d_mod_k.to(1))),
              testing::ElementsAre("s0.nic0-leaf0 up", "s1.nic0-leaf0 down"));
  EXPECT_THAT(fabric.routes.path(fabric.nics[0], fabric.nics[0], fabric.d_mod_k.to(0)),
              testing::Optional(testing::IsEmpty()));
}

TEST(Routes, AreNoneWhereNoWayLeads) {
  topo::Cluster cluster = TestFabric::cluster_of(4, 2, {1e9});
  topo::Graph graph = build_graph(cluster);
  // Without the cables of leaf1.
  std::erase_if(graph.links, [&](const topo::Link& link) {
    return link.a_nic < 0 && graph.nodes[link.a.index()].name == "leaf1";
  });
  for (auto& links : graph.links_of)
    links.clear();
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    graph.links_of[graph.links[i].a.index()].push_back({static_cast<int>(i)});
    graph.links_of[graph.links[i].b.index()].push_back({static_cast<int>(i)});
  }
  const Routes routes(graph);
  EXPECT_EQ(routes.path(nic_link(graph, ServerId{0}, 0), nic_link(graph, ServerId{2}, 0),
                        DModKNextHop(graph).to(2)),
            std::nullopt);
}

// Over three tiers and several rails: the links that are used are those of ecmp_shares(), each.
TEST(Routes, OfManyChoicesAreTheEqualCostOnes) {
  topo::Cluster cluster = TestFabric::three_tiers_of(32, 4, 4, 8, {1e9});
  cluster.server_types["one"].nic_count = 2;
  cluster.fabric.rails = 2;
  const topo::Graph graph = build_graph(cluster);
  const Routes routes(graph);
  std::mt19937 random(3);
  for (const auto& [to, nic] : {std::pair{1, 1}, {6, 0}, {31, 1}, {17, 0}}) {
    std::set<std::uint32_t> seen;
    for (int i = 0; i < 3000; ++i) {
      const auto path =
          routes.path(nic_link(graph, ServerId{0}, 0), nic_link(graph, ServerId{to}, nic),
                      [&](NodeId, std::size_t hops) { return random() % hops; });
      ASSERT_TRUE(path);
      seen.insert(path->begin(), path->end());
    }
    std::set<std::uint32_t> expected;
    const auto shares = topo::ecmp_shares(graph, ServerId{0}, 0, ServerId{to}, nic);
    ASSERT_TRUE(shares);
    for (const topo::LinkShare& share : *shares)
      expected.insert(number_of(share.link));
    EXPECT_EQ(seen, expected) << to << " " << nic;
  }
}

// 16 servers to a group of 4 spines with 4 super-spines each: paths from one server to those of
// another group use every uplink alike.
TEST(Routes, ByDestinationUseAllLinksOfAllTiersAlike) {
  const topo::Graph graph = build_graph(TestFabric::three_tiers_of(32, 4, 4, 16, {1e9}));
  const Routes routes(graph);
  const DModKNextHop d_mod_k(graph);
  std::map<std::uint32_t, int> flows;
  for (int from = 0; from < 16; ++from) {
    for (int to = 16; to < 32; ++to) {
      const auto path =
          routes.path(nic_link(graph, ServerId{from}, 0), nic_link(graph, ServerId{to}, 0),
                      d_mod_k.to(static_cast<std::size_t>(to)));
      ASSERT_TRUE(path);
      for (const std::uint32_t link : *path)
        ++flows[link];
    }
  }
  EXPECT_EQ(flows.size(), 16U + 16U + 16U + 16U + 16U + 16U);  // up and down three tiers
  for (const auto& [link, count] : flows)
    EXPECT_EQ(count, 16) << graph.links[link / 2].name;
}

}  // namespace
}  // namespace regatta::fabric
