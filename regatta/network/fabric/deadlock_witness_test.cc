#include <numeric>

#include <gmock/gmock.h>

#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/test_deadlock.h"

namespace regatta::fabric {
namespace {

std::vector<std::uint32_t> seeds_of(const topo::Graph& graph) {
  std::vector<std::uint32_t> seeds(graph.nodes.size());
  std::iota(seeds.begin(), seeds.end(), 12345U);
  return seeds;
}

void expect_deadlock(const topo::Graph& graph, const Routes& routes, const DependencyCycle& cycle) {
  const auto witness = find_deadlock_witness(graph, routes, seeds_of(graph), cycle);
  ASSERT_TRUE(witness) << witness.error().message;
  EXPECT_THAT(witness->deadlock, testing::UnorderedElementsAreArray(cycle));
  EXPECT_LT(witness->arrived, witness->messages);
  EXPECT_GT(witness->quiescent_at.value, 1e-5);
  EXPECT_LT(witness->quiescent_at.value, 1e-2);
}

// The example of Tagger, as in deadlock_test.cc.
TEST(DeadlockWitness, ClosesTheCycleOfTwoBounces) {
  topo::Cluster cluster = TestFabric::cluster_of(32, 4, {50e9});
  const topo::Graph graph = build_graph(cluster);
  Routes routes(graph);
  const auto lead = [&](const char* at, const char* to, const char* next) {
    const std::uint32_t link = link_between(graph, node_of(graph, at), node_of(graph, next));
    routes.set_next_hops(node_of(graph, at), node_of(graph, to), std::vector{link});
  };
  lead("spine0", "leaf2", "leaf0");
  lead("leaf0", "leaf2", "spine1");
  lead("spine1", "leaf3", "leaf1");
  lead("leaf1", "leaf3", "spine0");
  const auto cycle = find_dependency_cycle(graph, routes);
  ASSERT_TRUE(cycle);
  expect_deadlock(graph, routes, *cycle);
}

TEST(DeadlockWitness, ClosesTheCycleThatFailuresMake) {
  topo::Cluster cluster = TestFabric::cluster_of(16, 4, {50e9});
  const topo::Graph graph = build_graph(cluster);
  FailureCheck check = check_failures(graph, {.at_once = 2, .switches = false});
  for (int at_once = 3; !check.cycle && at_once <= 6; ++at_once)
    check = check_failures(graph, {.at_once = at_once, .switches = false, .most_sets = 20'000});
  ASSERT_TRUE(check.cycle);
  const topo::Graph left = without(graph, *check.failed);
  expect_deadlock(left, Routes(left), *check.cycle);
}

TEST(DeadlockWitness, SaysWhereNoTrafficGoesOverTheCircle) {
  const topo::Graph graph = build_graph(TestFabric::cluster_of(16, 4, {50e9}));
  const std::uint32_t up = link_between(graph, node_of(graph, "leaf0"), node_of(graph, "spine0"));
  const auto witness = find_deadlock_witness(graph, Routes(graph), seeds_of(graph), {up, up ^ 1U});
  ASSERT_FALSE(witness);
  EXPECT_EQ(witness.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace regatta::fabric
