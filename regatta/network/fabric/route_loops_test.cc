#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/test_deadlock.h"

namespace regatta::fabric {
namespace {

using testing::UnorderedElementsAre;

std::optional<RouteLoop> loop_of(const topo::Graph& graph, const std::string& text) {
  const auto routes = parse_routes(graph, text, "r.txt");
  EXPECT_TRUE(routes) << routes.error().message;
  return find_loop(graph, *routes);
}

TEST(RouteLoops, AreNotInShortestWays) {
  for (const int tiers : {2, 3}) {
    const topo::Graph graph = clos(tiers);
    EXPECT_FALSE(find_loop(graph, Routes(graph)));
  }
}

TEST(RouteLoops, AreFoundWhereASwitchSendsBack) {
  const topo::Graph graph = clos(2);
  const auto loop = loop_of(graph,
                            "leaf0 leaf1 leaf0-spine0 leaf0-spine1\n"
                            "spine0 leaf1 leaf0-spine0\n");
  ASSERT_TRUE(loop);
  EXPECT_EQ(graph.nodes[loop->leaf.index()].name, "leaf1");
  const auto node = [&](const char* name) { return node_of(graph, name); };
  EXPECT_THAT(loop->links,
              UnorderedElementsAre(link_between(graph, node("leaf0"), node("spine0")),
                                   link_between(graph, node("spine0"), node("leaf0"))));
}

TEST(RouteLoops, AreNotWhereWaysOnlyBounce) {
  EXPECT_FALSE(loop_of(clos(2),
                       "spine0 leaf2 leaf0-spine0\n"
                       "leaf0  leaf2 leaf0-spine1\n"));
}

// No leaf sends to leaf1 by spine2 or spine3.
TEST(RouteLoops, DoNotCountWhereNoTrafficComes) {
  const std::string here = "spine2 leaf1 leaf0-spine2\n";
  std::string away = here;
  for (const char* leaf : {"0", "2", "3", "4", "5", "6", "7"})
    away += fmt::format("leaf{0} leaf1 leaf{0}-spine0\n", leaf);
  const topo::Graph graph = clos(2);
  EXPECT_TRUE(loop_of(graph, here));
  EXPECT_FALSE(loop_of(graph, away));
}

// A long random walk over drawn routes ends, or the search finds a loop.
TEST(RouteLoops, AreFoundWhereverAWalkDoesNotEnd) {
  const topo::Graph graph = clos(2);
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Routes routes(graph);
    for (int changes = static_cast<int>(random() % 6); changes > 0; --changes) {
      const auto& leaves = routes.leaves();
      const NodeId leaf = leaves[random() % leaves.size()];
      const NodeId spine = node_of(graph, "spine" + std::to_string(random() % 4));
      const auto& links = graph.links_of[spine.index()];
      const LinkId link = links[random() % links.size()];
      routes.set_next_hops(spine, leaf,
                           std::vector{number_of({link, graph.links[link.index()].a == spine})});
    }
    std::size_t longest = 0;
    for (int walk = 0; walk < 400; ++walk) {
      const auto& leaves = routes.leaves();
      NodeId at = leaves[random() % leaves.size()];
      const NodeId to = leaves[random() % leaves.size()];
      std::size_t steps = 0;
      for (; at != to && steps < 1000; ++steps) {
        const auto hops = routes.next_hops(at, to);
        const std::uint32_t hop = hops[random() % hops.size()];
        at = head_of(graph, hop);
      }
      longest = std::max(longest, steps);
    }
    // Without a loop no node comes twice.
    const auto loop = find_loop(graph, routes);
    EXPECT_TRUE(loop || longest < graph.nodes.size()) << seed;
    if (loop) expect_cycle(graph, loop->links);
  }
}

}  // namespace
}  // namespace regatta::fabric
