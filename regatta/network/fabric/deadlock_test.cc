#include "regatta/network/fabric/deadlock.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "regatta/network/fabric/test_deadlock.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::fabric {
namespace {

TEST(Deadlocks, CannotBeWhereWaysGoUpAndDownOnce) {
  for (const int tiers : {1, 2, 3}) {
    const topo::Graph graph = clos(tiers, tiers == 1 ? 4 : 32);
    EXPECT_FALSE(find_dependency_cycle(graph, Routes(graph))) << tiers;
  }
}

// The example of Tagger (CoNEXT 2017): traffic that comes down to a leaf and bounces up again, for
// two leaves, closes a cycle over two spines.
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
  EXPECT_FALSE(find_dependency_cycle(graph, routes)) << "one bounce alone";
  routes.set_next_hops(node("spine1"), node("leaf3"), std::vector{down1});
  routes.set_next_hops(node("leaf1"), node("leaf3"), std::vector{up1});
  // Traffic that bounced off leaf0 meets traffic that goes down to bounce off leaf1, and reversely.
  const auto cycle = find_dependency_cycle(graph, routes);
  ASSERT_TRUE(cycle);
  expect_cycle(graph, *cycle);
  EXPECT_THAT(*cycle, testing::UnorderedElementsAre(down0, up0, down1, up1));
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
    const auto cycle = find_dependency_cycle(graph, routes);
    ASSERT_TRUE(cycle) << i;
    expect_cycle(graph, *cycle);
  }
}

// The proof: each link waits only for links of later layers.
TEST(Deadlocks, AreRuledOutByLayersOfLinks) {
  const topo::Graph graph = clos(3);
  const DeadlockCheck check = check_deadlock(graph, Routes(graph));
  EXPECT_FALSE(check.cycle);
  EXPECT_EQ(check.bounces, 0U);
  // Eight leaves of two groups, each with four uplinks; eight spines with two each.
  EXPECT_EQ(check.links, 2U * (8 * 4 + 8 * 2));
  // Up to a spine, up to a super-spine, down to a spine, down to a leaf.
  EXPECT_THAT(check.layers, testing::ElementsAre(32, 16, 16, 32));
  // Up: from each leaf's link to the two of the spine, and to the three other leaves; at the
  // super-spine to the other group; down: from each of the two to four leaves.
  EXPECT_EQ(check.dependencies, 8U * 4 * (2 + 3) + 16U * 1 + 16U * 4);
}

TEST(Deadlocks, TellWhatBouncesEvenWithoutACircle) {
  const topo::Graph graph = clos(2);
  Routes routes(graph);
  const auto node = [&](const char* name) { return node_of(graph, name); };
  const std::uint32_t down = link_between(graph, node("spine0"), node("leaf0"));
  const std::uint32_t up = link_between(graph, node("leaf0"), node("spine1"));
  routes.set_next_hops(node("spine0"), node("leaf2"), std::vector{down});
  routes.set_next_hops(node("leaf0"), node("leaf2"), std::vector{up});
  const DeadlockCheck check = check_deadlock(graph, routes);
  EXPECT_FALSE(check.cycle);
  EXPECT_EQ(check.bounces, 1U);
  EXPECT_EQ(cause_of_dependency(graph, routes, down, up), node("leaf2"));
  EXPECT_EQ(cause_of_dependency(graph, routes, down, up ^ 1U), std::nullopt);
}

}  // namespace
}  // namespace regatta::fabric
