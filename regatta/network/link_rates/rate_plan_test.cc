#include "regatta/network/link_rates/rate_plan.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "regatta/network/link_rates/test_rates.h"

namespace regatta::link_rates {
namespace {

std::map<std::uint32_t, std::vector<TrainPath>> by_last_link(const RatePlan& plan) {
  std::map<std::uint32_t, std::vector<TrainPath>> paths;
  for (const TrainPath& path : plan.paths)
    paths[path.loaded_links().back()].push_back(path);
  return paths;
}

TEST(PlanRates, LoadsEveryLinkLastByThreePaths) {
  for (const Shape& shape :
       {Shape{.servers = 4, .servers_per_leaf = 2, .spines = 2},
        Shape{.servers = 16, .servers_per_leaf = 4, .spines = 4},
        Shape{.servers = 8, .nics = 2, .rails = 2, .servers_per_leaf = 4, .spines = 2},
        Shape{.servers = 16,
        .servers_per_leaf = 2,
        .spines = 2,
        .leaves_per_group = 2,
        .super_spines = 2}}) {
    const Fabric fabric(shape);
    const RatePlan plan = plan_rates(fabric.graph, fabric.routes, fabric.seeds);
    EXPECT_TRUE(plan.missing.empty());
    const auto paths = by_last_link(plan);
    EXPECT_EQ(paths.size(), 2 * fabric.graph.links.size());
    for (const auto& [link, its] : paths)
      EXPECT_EQ(its.size(), 3U) << fabric.graph.links[link / 2].name;
  }
}

TEST(PlanRates, PathsAreThoseOfTheSwitchesHash) {
  const Fabric fabric({.servers = 6, .servers_per_leaf = 2, .spines = 2});
  for (const TrainPath& path : plan_rates(fabric.graph, fabric.routes, fabric.seeds).paths) {
    const auto links =
        fabric.routes.path(path.from, path.to, fabric::EcmpNextHop{path.flow, fabric.seeds});
    EXPECT_EQ(path.links, *links);
    EXPECT_GE(path.loaded, 1U);
    EXPECT_LE(path.loaded, path.links.size());
  }
}

TEST(PlanRates, AvoidsNarrowerLinksBeforeTheOneThatItMeasures) {
  topo::Cluster cluster = probe::cluster_of({.servers = 4, .servers_per_leaf = 2, .spines = 2});
  cluster.fabric.uplink = {5e8};  // half of a NIC
  const topo::Graph graph = build_graph(cluster);
  const fabric::Routes routes(graph);
  const RatePlan plan = plan_rates(graph, routes, topo::hash_seeds(cluster, graph));
  // Packets to a NIC come from its own leaf, so that no uplink hides its rate.
  for (const TrainPath& path : plan.paths) {
    if (path.loaded != path.links.size()) continue;
    EXPECT_EQ(described_rate(graph, path), graph.links[path.to.index()].rate);
  }
}

TEST(PlanRates, SendersOfALinkDiffer) {
  const Fabric fabric({.servers = 16, .servers_per_leaf = 4, .spines = 2});
  const RatePlan plan = plan_rates(fabric.graph, fabric.routes, fabric.seeds);
  for (const auto& [link, paths] : by_last_link(plan)) {
    if (fabric.graph.links[link / 2].a_nic >= 0 && link % 2 == 0) continue;  // one sender has it
    std::set<LinkId> senders;
    for (const TrainPath& path : paths)
      senders.insert(path.from);
    EXPECT_EQ(senders.size(), 3U) << fabric.graph.links[link / 2].name;
  }
}

TEST(PlanRates, NamesLinksThatNoPathCanLoad) {
  const Fabric fabric({.servers = 1, .servers_per_leaf = 2, .spines = 2});
  const RatePlan plan = plan_rates(fabric.graph, fabric.routes, fabric.seeds);
  EXPECT_TRUE(plan.paths.empty());
  EXPECT_EQ(plan.missing.size(), 2 * fabric.graph.links.size());
}

TEST(CandidateFlows, AreBoundedInLargeFabrics) {
  const Fabric small({.servers = 8, .servers_per_leaf = 2, .spines = 2});
  EXPECT_EQ(candidate_flows(small.graph, {}).size(), 8U * 7 * 32);
  const Fabric large({.servers = 8192, .servers_per_leaf = 32, .spines = 8});
  EXPECT_LE(candidate_flows(large.graph, {}).size(), 400'000U);
  EXPECT_TRUE(plan_rates(large.graph, large.routes, large.seeds).missing.empty());
}

}  // namespace
}  // namespace regatta::link_rates
