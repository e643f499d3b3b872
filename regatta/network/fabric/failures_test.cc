#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include <gmock/gmock.h>

#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/test_deadlock.h"

namespace regatta::fabric {
namespace {

TEST(Failures, OfAnyLinkOfAClosMakeNoCircle) {
  for (const int tiers : {2, 3}) {
    const topo::Graph graph = clos(tiers);
    const FailureCheck check = check_failures(graph, {.switches = false});
    EXPECT_EQ(check.checked,
              static_cast<std::size_t>(std::ranges::count(graph.links, -1, &topo::Link::a_nic)));
    EXPECT_FALSE(check.cycle) << tiers;
    EXPECT_EQ(check.unreachable, 0U);
  }
}

// Four leaves, two spines, and leaf3 without a cable to spine0: when another leaf loses that to
// spine1, the two have no spine together, and their traffic bounces off the others.
TEST(Failures, AreFoundThatMakeACirclePossible) {
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
  ASSERT_FALSE(find_dependency_cycle(graph, Routes(graph)));
  const FailureCheck check = check_failures(graph, {.switches = false});
  ASSERT_TRUE(check.cycle);
  expect_cycle(graph, *check.cycle);
  EXPECT_EQ(graph.links[check.failed->links.at(0).index()].name, "leaf0-spine1");
  EXPECT_EQ(check.cycle->size(), 4U);
}

// With one spine every link is needed.
TEST(Failures, AreNotAskedOfLeavesThatAreCutOff) {
  topo::Cluster cluster = TestFabric::cluster_of(8, 2, {1e9});
  cluster.fabric.spines = 1;
  const FailureCheck check = check_failures(build_graph(cluster), {.switches = false});
  EXPECT_EQ(check.checked, 4U);
  EXPECT_EQ(check.rerouted, 0U);  // there is no other path
  EXPECT_EQ(check.unreachable, 4U);
  EXPECT_FALSE(check.cycle);
}

// Spines of a fabric that has others: traffic only takes fewer paths.
TEST(Failures, OfSwitchesAreLookedAtToo) {
  const topo::Graph graph = clos(3);
  const FailureCheck check = check_failures(graph);
  // 48 cables, 8 leaves, 8 spines, 8 super-spines.
  EXPECT_EQ(check.checked, 72U);
  EXPECT_EQ(check.sets, 72);
  EXPECT_FALSE(check.is_sample);
  EXPECT_EQ(check.rerouted, 0U);
  EXPECT_EQ(check.unreachable, 0U);
  topo::Cluster cluster = TestFabric::cluster_of(8, 2, {1e9});
  cluster.fabric.spines = 1;
  const FailureCheck one_spine = check_failures(build_graph(cluster));
  // The spine and each of its four links cut leaves off; a leaf takes only its own servers along.
  EXPECT_EQ(one_spine.checked, 9U);
  EXPECT_EQ(one_spine.unreachable, 5U);
}

// Two leaves that lost different ones of two spines have none together.
TEST(Failures, OfTwoLinksMakeACircleWhereOneDoesNot) {
  const topo::Graph graph = build_graph(TestFabric::cluster_of(8, 2, {1e9}));
  EXPECT_FALSE(check_failures(graph).cycle);
  const FailureCheck check = check_failures(graph, {.at_once = 2});
  ASSERT_TRUE(check.cycle);
  EXPECT_EQ(check.sets, 14 * 13 / 2);
  ASSERT_EQ(check.failed->links.size(), 2U);
  EXPECT_EQ(graph.links[check.failed->links[0].index()].name, "leaf0-spine0");
  EXPECT_EQ(graph.links[check.failed->links[1].index()].name, "leaf1-spine1");
  expect_cycle(graph, *check.cycle);
  const topo::Graph left = without(graph, *check.failed);
  EXPECT_TRUE(find_dependency_cycle(left, Routes(left)));
}

TEST(Failures, AreDrawnWhereThereAreTooMany) {
  const topo::Graph graph = clos(3);
  std::size_t told = 0;
  const FailureCheck check = check_failures(
      graph, {.at_once = 3, .most_sets = 50, .progress = [&](std::size_t, std::size_t all) {
                told = all;
              }});
  EXPECT_TRUE(check.is_sample);
  EXPECT_EQ(check.sets, 72.0 * 71 * 70 / 6);
  EXPECT_EQ(check.checked, 50U);
  EXPECT_EQ(told, 50U);
}

// A directed link, and the leaf that traffic over it goes to.
using Hop = std::pair<std::uint32_t, int>;

void walk(const topo::Graph& graph, const Routes& routes, NodeId node, NodeId to,
          std::set<Hop>& hops) {
  for (const std::uint32_t hop : routes.next_hops(node, to))
    if (hops.emplace(hop, to.value).second) walk(graph, routes, head_of(graph, hop), to, hops);
}

// All that traffic goes over between leaves that work.
std::set<Hop> hops_of(const topo::Graph& graph, const topo::Graph& left, const FailureSet& failed) {
  const Routes routes(left);
  std::set<Hop> hops;
  for (const NodeId from : routes.leaves())
    for (const NodeId to : routes.leaves())
      if (std::ranges::count(failed.switches, from) + std::ranges::count(failed.switches, to) == 0)
        walk(graph, routes, from, to, hops);
  return hops;
}

// The short path of telling which failures matter against looking at all paths again.
TEST(Failures, MakeNoCycleThatTheShortWayMisses) {
  std::mt19937 random(3);
  std::size_t cycles = 0;
  for (int i = 0; i < 300; ++i) {
    const topo::Graph whole = clos(2 + i % 2, 16);
    // Some cables are missing from the beginning, so that single failures lead new paths.
    FailureSet missing;
    for (int k = 0; k < 8; ++k) {
      const auto link = static_cast<std::size_t>(random() % whole.links.size());
      if (whole.links[link].a_nic < 0) missing.links.push_back({static_cast<int>(link)});
    }
    const topo::Graph graph = without(whole, missing);
    if (find_dependency_cycle(graph, Routes(graph))) continue;
    const FailureCheck check = check_failures(graph);
    std::optional<DependencyCycle> first;
    std::size_t led = 0;
    const std::set<Hop> before = hops_of(graph, graph, {});
    const auto try_one = [&](const FailureSet& failed) {
      if (first) return;
      const topo::Graph left = without(graph, failed);
      first = find_dependency_cycle(left, Routes(left));
      const std::set<Hop> now = hops_of(graph, left, failed);
      led += std::ranges::includes(before, now) ? 0 : 1;
    };
    for (std::size_t link = 0; link < graph.links.size(); ++link)
      if (graph.links[link].a_nic < 0) try_one({{{static_cast<int>(link)}}, {}});
    for (std::size_t node = 0; node < graph.nodes.size(); ++node)
      if (graph.nodes[node].kind != topo::NodeKind::kServer)
        try_one({{}, {{static_cast<int>(node)}}});
    EXPECT_EQ(check.cycle, first) << i;
    EXPECT_EQ(check.rerouted, led) << i;
    cycles += first ? 1 : 0;
  }
  EXPECT_GT(cycles, 20U);
}

}  // namespace
}  // namespace regatta::fabric
