#include "regatta/fabric/deadlock.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "regatta/fabric/test_fabric.h"

namespace regatta::fabric {
namespace {

topo::Graph clos(int tiers, int servers = 32) {
  topo::Cluster cluster = TestFabric::three_tiers_of(servers, 4, 4, 8, {1e9});
  cluster.fabric.tiers = tiers;
  return build_graph(cluster);
}

NodeId node_of(const topo::Graph& graph, const std::string& name) {
  const auto at = std::ranges::find(graph.nodes, name, &topo::Node::name);
  return {static_cast<int>(at - graph.nodes.begin())};
}

// From one switch to another.
std::uint32_t link_between(const topo::Graph& graph, NodeId from, NodeId to) {
  for (const LinkId id : graph.links_of[from.index()]) {
    const topo::Link& link = graph.links[id.index()];
    if (link.a == to || link.b == to) return number_of({id, link.a == from});
  }
  ADD_FAILURE() << "no link";
  return 0;
}

// Each link of a circle leads to where the next one begins, and none comes twice.
void expect_circle(const topo::Graph& graph, const Circle& circle) {
  ASSERT_GE(circle.size(), 2U);
  EXPECT_EQ(std::set(circle.begin(), circle.end()).size(), circle.size());
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const std::uint32_t next = circle[(i + 1) % circle.size()];
    const topo::Link& here = graph.links[circle[i] / 2];
    const topo::Link& there = graph.links[next / 2];
    EXPECT_EQ(circle[i] % 2 == 0 ? here.b : here.a, next % 2 == 0 ? there.a : there.b);
  }
}

TEST(Deadlocks, CannotBeWhereWaysGoUpAndDownOnce) {
  for (const int tiers : {1, 2, 3}) {
    const topo::Graph graph = clos(tiers, tiers == 1 ? 4 : 32);
    EXPECT_FALSE(find_circle(graph, Routes(graph))) << tiers;
  }
}

// The example of Tagger (CoNEXT 2017): traffic that comes down to a leaf and bounces up again, for
// two leaves, closes a circle over two spines.
TEST(Deadlocks, AreFoundWhereTrafficBouncesOffTwoLeaves) {
  const topo::Graph graph = clos(2);
  const auto node = [&](const char* name) { return node_of(graph, name); };
  Routes routes(graph);
  // To leaf2 by spine0 and the bounce off leaf0, to leaf3 by spine1 and that off leaf1.
  const std::uint32_t down0 = link_between(graph, node("spine0"), node("leaf0"));
  const std::uint32_t up0 = link_between(graph, node("leaf0"), node("spine1"));
  const std::uint32_t down1 = link_between(graph, node("spine1"), node("leaf1"));
  const std::uint32_t up1 = link_between(graph, node("leaf1"), node("spine0"));
  routes.set_next_hops(node("spine0"), node("leaf2"), std::vector{down0});
  routes.set_next_hops(node("leaf0"), node("leaf2"), std::vector{up0});
  EXPECT_FALSE(find_circle(graph, routes)) << "one bounce alone";
  routes.set_next_hops(node("spine1"), node("leaf3"), std::vector{down1});
  routes.set_next_hops(node("leaf1"), node("leaf3"), std::vector{up1});
  // What bounced off leaf0 meets traffic that goes down to leaf1 to bounce there, and the reverse.
  const auto circle = find_circle(graph, routes);
  ASSERT_TRUE(circle);
  expect_circle(graph, *circle);
  EXPECT_THAT(*circle, testing::UnorderedElementsAre(down0, up0, down1, up1));
}

// A loop in somebody's routes, anywhere.
TEST(Deadlocks, AreFoundInEveryLoopThatIsPlanted) {
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    const topo::Graph graph = clos(3);
    Routes routes(graph);
    const NodeId leaf = routes.leaves()[random() % routes.leaves().size()];
    const NodeId to = routes.leaves()[random() % routes.leaves().size()];
    if (leaf == to) continue;
    // Up to some spine, which sends it back.
    const auto ups = routes.next_hops(leaf, to);
    const std::uint32_t up = ups[random() % ups.size()];
    const topo::Link& link = graph.links[up / 2];
    routes.set_next_hops(link.b, to, std::vector{up ^ 1U});
    const auto circle = find_circle(graph, routes);
    ASSERT_TRUE(circle) << i;
    expect_circle(graph, *circle);
  }
}

TEST(Deadlocks, CannotBeAfterTheFailureOfAnyLinkOfAClos) {
  for (const int tiers : {2, 3}) {
    const topo::Graph graph = clos(tiers);
    const FailureCheck check = check_single_failures(graph);
    EXPECT_EQ(check.failures,
              static_cast<std::size_t>(std::ranges::count(graph.links, -1, &topo::Link::a_nic)));
    EXPECT_FALSE(check.circle) << tiers;
    EXPECT_EQ(check.unreachable, 0U);
  }
}

// Four leaves, two spines, and leaf3 without a cable to spine0: when another leaf loses that to
// spine1, the two have no spine together, and their traffic bounces off the others.
TEST(Deadlocks, AreFoundAfterAFailureThatMakesThemPossible) {
  topo::Cluster cluster = TestFabric::cluster_of(8, 2, {1e9});
  topo::Graph graph = build_graph(cluster);
  const auto cut = [&](const char* leaf, const char* spine) {
    const NodeId a = node_of(graph, leaf);
    const NodeId b = node_of(graph, spine);
    const LinkId link{static_cast<int>(link_between(graph, a, b) / 2)};
    for (const NodeId node : {a, b})
      std::erase(graph.links_of[node.index()], link);
    return link;
  };
  cut("leaf3", "spine0");
  ASSERT_FALSE(find_circle(graph, Routes(graph)));
  const FailureCheck check = check_single_failures(graph);
  ASSERT_TRUE(check.circle);
  expect_circle(graph, *check.circle);
  EXPECT_EQ(graph.links[check.failed->index()].name, "leaf0-spine1");
  EXPECT_EQ(check.circle->size(), 4U);
}

// With one spine every link is needed.
TEST(Deadlocks, AreNotAskedOfLeavesThatAreCutOff) {
  topo::Cluster cluster = TestFabric::cluster_of(8, 2, {1e9});
  cluster.fabric.spines = 1;
  const FailureCheck check = check_single_failures(build_graph(cluster));
  EXPECT_EQ(check.failures, 4U);
  EXPECT_EQ(check.rerouted, 4U);
  EXPECT_EQ(check.unreachable, 4U);
  EXPECT_FALSE(check.circle);
}

}  // namespace
}  // namespace regatta::fabric
