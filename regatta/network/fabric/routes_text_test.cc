#include <string>

#include <gmock/gmock.h>

#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/test_deadlock.h"

namespace regatta::fabric {
namespace {

std::string complaint(const std::string& text) {
  const auto routes = parse_routes(clos(2), text, "r.txt");
  return routes ? "none" : routes.error().message;
}

TEST(RoutesText, ReplacesTheShortestWaysWhereItSaysSo) {
  const topo::Graph graph = clos(2);
  const auto routes = parse_routes(graph,
                                   "# bounces\n"
                                   "spine0 leaf2 leaf0-spine0\n\n"
                                   "leaf0  leaf2 leaf0-spine1 leaf0-spine3 # two\r\n"
                                   "leaf0\t* leaf0-spine2\n",
                                   "r.txt");
  ASSERT_TRUE(routes) << routes.error().message;
  const auto node = [&](const char* name) { return node_of(graph, name); };
  const auto hops = [&](const char* from, const char* to) {
    return routes->next_hops(node(from), node(to));
  };
  const auto link = [&](const char* from, const char* to) {
    return link_between(graph, node(from), node(to));
  };
  EXPECT_THAT(hops("spine0", "leaf2"), testing::ElementsAre(link("spine0", "leaf0")));
  EXPECT_THAT(hops("leaf0", "leaf2"),
              testing::ElementsAre(link("leaf0", "spine1"), link("leaf0", "spine3")));
  EXPECT_THAT(hops("leaf0", "leaf3"), testing::ElementsAre(link("leaf0", "spine2")));
  EXPECT_THAT(hops("leaf0", "leaf0"), testing::IsEmpty());
  EXPECT_EQ(hops("leaf1", "leaf2").size(), 4U);
}

TEST(RoutesText, ThatHasNoRouteIsRefused) {
  for (const char* text : {"", "\n\n", "# nothing yet\n"})
    EXPECT_EQ(complaint(text),
              "r.txt: no route is in it; write at least one line like: spine0 leaf3 leaf3-spine0");
}

TEST(RoutesText, LeavesTheShortestWaysWhereItSaysNothing) {
  const topo::Graph graph = clos(3);
  const NodeId leaf0 = node_of(graph, "leaf0");
  const Routes before(graph);
  const std::uint32_t hop = before.next_hops(leaf0, node_of(graph, "leaf1")).front();
  const auto routes =
      parse_routes(graph, "leaf0 leaf1 " + graph.links[hop / 2].name + "\n", "r.txt");
  ASSERT_TRUE(routes) << routes.error().message;
  const Routes shortest(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const NodeId node{static_cast<int>(i)};
    for (const NodeId leaf : shortest.leaves()) {
      if (node == leaf0 && leaf == node_of(graph, "leaf1")) continue;
      EXPECT_THAT(routes->next_hops(node, leaf),
                  testing::ElementsAreArray(shortest.next_hops(node, leaf)));
    }
  }
}

TEST(RoutesText, NamesLineAndRemedyOfWhatIsWrong) {
  EXPECT_EQ(complaint("leaf0 leaf1\n"),
            "r.txt:1: a route has a switch, a leaf and one link or more; write it like: spine0 "
            "leaf3 leaf3-spine0");
  EXPECT_EQ(complaint("\nspin0 leaf1 leaf1-spine0"),
            "r.txt:2: the cluster has no switch 'spin0'; did you mean 'spine0'?");
  EXPECT_EQ(complaint("s0 leaf1 leaf1-spine0"),
            "r.txt:1: the cluster has no switch 's0'; regatta topo CLUSTER --svg FILE shows them");
  EXPECT_EQ(complaint("leaf0 spine1 leaf0-spine0"),
            "r.txt:1: 'spine1' is no leaf with servers; a route leads to one, or to * for all");
  EXPECT_EQ(complaint("leaf1 leaf1 leaf1-spine0"),
            "r.txt:1: leaf1 is the leaf itself, whose servers hang on it; leave the line out");
  EXPECT_EQ(complaint("leaf0 leaf1 leaf1-spine0"),
            "r.txt:1: leaf0 has no link 'leaf1-spine0' to another switch; did you mean "
            "'leaf0-spine0'?");
  EXPECT_EQ(complaint("leaf0 leaf1 s0.nic0-leaf0"),
            "r.txt:1: leaf0 has no link 's0.nic0-leaf0' to another switch; write one like "
            "leaf0-spine0");
  EXPECT_EQ(complaint("leaf0 leaf1 leaf0-spine0 leaf0-spine0"),
            "r.txt:1: link leaf0-spine0 is given twice; keep one");
  EXPECT_EQ(complaint("leaf0 leaf1 leaf0-spine0\nleaf0 leaf1 leaf0-spine1"),
            "r.txt:2: the route of leaf0 to leaf1 is given twice; keep one line");
}

}  // namespace
}  // namespace regatta::fabric
