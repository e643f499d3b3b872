#include <gmock/gmock.h>

#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/test_deadlock.h"

namespace regatta::fabric {
namespace {

std::string name_of(const topo::Graph& graph, NodeId node) {
  return graph.nodes[node.index()].name;
}

// A spine has one cable to each leaf: without it, it has no path for what others bring.
TEST(RouteFailures, NameTheRouteWhoseLinkIsGone) {
  const topo::Graph graph = clos(2);
  const RouteFailureCheck check =
      check_route_failures(graph, Routes(graph), {.switches = false}, 1000);
  const auto cables =
      static_cast<std::size_t>(std::ranges::count(graph.links, -1, &topo::Link::a_nic));
  EXPECT_EQ(check.checked, cables);
  EXPECT_EQ(check.losing, cables);
  ASSERT_EQ(check.lost.size(), cables);
  for (const LostRoute& lost : check.lost) {
    const topo::Link& link = graph.links[lost.failed.links.at(0).index()];
    EXPECT_EQ(lost.at, link.b);
    EXPECT_EQ(lost.to, link.a);
  }
}

// Nobody sends over spine0 but leaf0 itself.
TEST(RouteFailures, AreNotToldWhereNoTrafficComes) {
  const topo::Graph graph = clos(2);
  std::string text;
  const Routes shortest(graph);
  for (const NodeId leaf : shortest.leaves()) {
    const std::string name = name_of(graph, leaf);
    text += name + " * " + name + "-spine1\n";
  }
  const auto routes = parse_routes(graph, text, "r.txt");
  ASSERT_TRUE(routes) << routes.error().message;
  const RouteFailureCheck check = check_route_failures(graph, *routes, {.switches = false}, 1000);
  // Each leaf's one cable leads its own traffic and that to it.
  EXPECT_EQ(check.losing, routes->leaves().size());
  for (const LostRoute& lost : check.lost)
    EXPECT_EQ(name_of(graph, graph.links[lost.failed.links.at(0).index()].b), "spine1");
}

TEST(RouteFailures, OfSwitchesLoseWhatLedOverThem) {
  const topo::Graph graph = clos(2);
  const auto routes = parse_routes(graph, "leaf0 leaf1 leaf0-spine2\n", "r.txt");
  ASSERT_TRUE(routes) << routes.error().message;
  const RouteFailureCheck check = check_route_failures(graph, *routes, {}, 1000);
  std::size_t of_spine = 0;
  for (const LostRoute& lost : check.lost) {
    if (lost.failed.switches.empty()) continue;
    // Where a leaf is gone nothing is sent to it, and other spines are not the only path.
    EXPECT_EQ(name_of(graph, lost.failed.switches[0]), "spine2");
    EXPECT_EQ(name_of(graph, lost.at), "leaf0");
    EXPECT_EQ(name_of(graph, lost.to), "leaf1");
    ++of_spine;
  }
  EXPECT_EQ(of_spine, 1U);
}

TEST(RouteFailures, NameNoMoreThanAsked) {
  const topo::Graph graph = clos(2);
  const RouteFailureCheck check = check_route_failures(
      graph, Routes(graph), {.at_once = 2, .switches = false, .most_sets = 20}, 3);
  EXPECT_TRUE(check.is_sample);
  EXPECT_EQ(check.checked, 20U);
  EXPECT_EQ(check.losing, 20U);
  EXPECT_EQ(check.lost.size(), 3U);
}

}  // namespace
}  // namespace regatta::fabric
