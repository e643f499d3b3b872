#include "regatta/fabric/routes_text.h"

#include <string>

#include <gmock/gmock.h>

#include "regatta/fabric/test_deadlock.h"

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

TEST(RoutesText, IsTheShortestWaysWhenEmpty) {
  const topo::Graph graph = clos(3);
  const auto routes = parse_routes(graph, "", "r.txt");
  ASSERT_TRUE(routes);
  const Routes shortest(graph);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    for (const NodeId leaf : shortest.leaves())
      EXPECT_THAT(routes->next_hops({static_cast<int>(node)}, leaf),
                  testing::ElementsAreArray(shortest.next_hops({static_cast<int>(node)}, leaf)));
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
