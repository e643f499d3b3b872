// fabric/test_deadlock.h: fabrics and checks for tests of deadlocks.
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::fabric {

inline topo::Graph clos(int tiers, int servers = 32) {
  topo::Cluster cluster = TestFabric::three_tiers_of(servers, 4, 4, 8, {1e9});
  cluster.fabric.tiers = tiers;
  return build_graph(cluster);
}

inline NodeId node_of(const topo::Graph& graph, const std::string& name) {
  const auto at = std::ranges::find(graph.nodes, name, &topo::Node::name);
  return {static_cast<int>(at - graph.nodes.begin())};
}

// From one switch to another.
inline std::uint32_t link_between(const topo::Graph& graph, NodeId from, NodeId to) {
  for (const LinkId id : graph.links_of[from.index()]) {
    const topo::Link& link = graph.links[id.index()];
    if (link.a == to || link.b == to) return number_of({id, link.a == from});
  }
  ADD_FAILURE() << "no link";
  return 0;
}

// Each link of a cycle ends where the next one begins, and no link comes twice.
inline void expect_cycle(const topo::Graph& graph, const DependencyCycle& cycle) {
  ASSERT_GE(cycle.size(), 2U);
  EXPECT_EQ(std::set(cycle.begin(), cycle.end()).size(), cycle.size());
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::uint32_t next = cycle[(i + 1) % cycle.size()];
    EXPECT_EQ(head_of(graph, cycle[i]), tail_of(graph, next));
  }
}

}  // namespace regatta::fabric
