#include "regatta/model/topo/graph_names.h"

#include <gtest/gtest.h>

namespace regatta::topo {
namespace {

Graph one_cable() {
  Graph graph;
  graph.nodes = {{.name = "leaf0"}, {.name = "spine1"}};
  graph.links = {{.a = NodeId{0}, .b = NodeId{1}, .name = "leaf0-spine1"}};
  return graph;
}

TEST(GraphNames, FindNodesAndLinksAndNothingElse) {
  const Graph graph = one_cable();
  EXPECT_EQ(find_node(graph, "spine1"), NodeId{1});
  EXPECT_EQ(find_link(graph, "leaf0-spine1"), LinkId{0});
  EXPECT_EQ(find_node(graph, "spine"), std::nullopt);
  EXPECT_EQ(find_link(graph, ""), std::nullopt);
}

TEST(GraphNames, TellADirectionByItsEnds) {
  const Graph graph = one_cable();
  EXPECT_EQ(to_string(graph, {LinkId{0}, true}), "leaf0-spine1 from leaf0 to spine1");
  EXPECT_EQ(to_string(graph, {LinkId{0}, false}), "leaf0-spine1 from spine1 to leaf0");
  EXPECT_EQ(directed_link_name(graph, 0), "leaf0-spine1 up");
  EXPECT_EQ(directed_link_name(graph, 1), "leaf0-spine1 down");
}

}  // namespace
}  // namespace regatta::topo
