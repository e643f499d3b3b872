// heal/test_fabric.h: fabrics whose parts break, for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/heal/internal/decide.h"

namespace regatta::heal {

struct TestFabricPaths {
  explicit TestFabricPaths(const topo::Cluster& cluster)
      : graph(build_graph(cluster)), paths(graph) {}

  // `leaves` leaves with one server each under `spines` spines.
  static TestFabricPaths two_tiers(int leaves, int spines) {
    topo::Cluster cluster = fabric::TestFabric::cluster_of(leaves, 1, {1e9});
    cluster.fabric.spines = spines;
    return TestFabricPaths(cluster);
  }
  // 8 leaves in 4 groups of 2 leaves and 3 spines, 6 super-spines above them.
  static TestFabricPaths three_tiers() {
    topo::Cluster cluster = fabric::TestFabric::three_tiers_of(8, 1, 2, 6, {1e9});
    cluster.fabric.spines = 3;
    return TestFabricPaths(cluster);
  }

  NodeId node(const std::string& name) const {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].name == name) return NodeId{static_cast<int>(i)};
    REGATTA_CHECK(false);
    return {};
  }
  std::uint32_t link(const std::string& from, const std::string& to) const {
    for (std::uint32_t i = 0; i < paths.end_of.size(); ++i)
      if (paths.start_of[i] == node(from) && paths.end_of[i] == node(to)) return i;
    REGATTA_CHECK(false);
    return 0;
  }
  Fault broken_link(const std::string& from, const std::string& to,
                    Harm harm = Harm::kBlackHole) const {
    return {Place::kLink, link(from, to), {}, harm};
  }
  Fault broken_switch(const std::string& name, Harm harm = Harm::kBlackHole) const {
    return {Place::kSwitch, 0, node(name), harm};
  }

  topo::Graph graph;
  FabricPaths paths;
};

}  // namespace regatta::heal
