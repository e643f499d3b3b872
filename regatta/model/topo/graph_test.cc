#include "regatta/model/topo/graph.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/cluster_yaml.h"

namespace regatta::topo {
namespace {

struct Shape {
  int servers = 1;
  int per_leaf = 1;
  int rails = 1;
  int nics = 1;
  int spines = 0;            // 0: one tier
  int leaves_per_group = 0;  // 0: two tiers
  int super_spines = 0;
};

Cluster make_cluster(const Shape& shape) {
  const char* tiers = shape.spines == 0             ? "[leaf]"
                      : shape.leaves_per_group == 0 ? "[leaf, spine]"
                                                    : "[leaf, spine, super-spine]";
  std::string text = fmt::format(
      "name: t\n"
      "server_types:\n"
      "  n:\n"
      "    devices: {{count: {0}, type: cpu}}\n"
      "    nics: {{count: {0}, rate: 100Gbps}}\n"
      "servers: {{count: {1}, type: n}}\n"
      "fabric:\n"
      "  tiers: {2}\n"
      "  rails: {3}\n"
      "  servers_per_leaf: {4}\n",
      shape.nics, shape.servers, tiers, shape.rails, shape.per_leaf);
  if (shape.spines > 0) text += fmt::format("  spines: {}\n  uplink: 100Gbps\n", shape.spines);
  if (shape.leaves_per_group > 0) {
    text += fmt::format("  leaves_per_group: {}\n  super_spines: {}\n", shape.leaves_per_group,
                        shape.super_spines);
  }
  auto cluster = parse_cluster(text, "shape.yaml");
  if (!cluster) ADD_FAILURE() << cluster.error().message;
  return cluster ? *cluster : Cluster{};
}

std::size_t count_kind(const Graph& graph, NodeKind kind) {
  return static_cast<std::size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(),
                    [kind](const Node& node) { return node.kind == kind; }));
}

TEST(BuildGraph, MakesOneLeafForOneTier) {
  const Graph graph = build_graph(make_cluster({.servers = 3, .per_leaf = 3}));
  EXPECT_EQ(graph.nodes.size(), 4U);
  ASSERT_EQ(graph.links.size(), 3U);
  EXPECT_EQ(graph.links[2].name, "s2.nic0-leaf0");
  EXPECT_EQ(graph.links[2].a_nic, 0);
}

Cluster parse(const std::string& fabric, int servers, int nics) {
  auto cluster = parse_cluster(
      fmt::format(
          "name: t\nserver_types: {{n: {{devices: {{count: {0}, type: cpu}}, nics: {{count: "
          "{0}, rate: 100Gbps}}}}}}\nservers: {{count: {1}, type: n}}\nfabric: {2}\n",
          nics, servers, fabric),
      "shape.yaml");
  if (!cluster) ADD_FAILURE() << cluster.error().message;
  return cluster ? *cluster : Cluster{};
}

std::vector<std::string> uplinks_of(const Graph& graph, const std::string& name) {
  std::vector<std::string> links;
  for (const Link& link : graph.links)
    if (graph.nodes[link.a.index()].name == name) links.push_back(link.name);
  return links;
}

TEST(BuildGraph, LaysSeveralCablesBetweenTwoSwitches) {
  const Graph graph = build_graph(
      parse("{tiers: [leaf, spine, super-spine], servers_per_leaf: 1, spines: 2, uplink: 1Gbps, "
            "uplink_cables: 2, leaves_per_group: 2, super_spines: 2, super_uplink_cables: 3}",
            4, 1));
  EXPECT_EQ(uplinks_of(graph, "leaf1"),
            (std::vector<std::string>{"leaf1-spine0", "leaf1-spine0.1", "leaf1-spine1",
                                      "leaf1-spine1.1"}));
  EXPECT_EQ(uplinks_of(graph, "spine3"),
            (std::vector<std::string>{"spine3-super1", "spine3-super1.1", "spine3-super1.2"}));
  const auto shares = ecmp_shares(graph, ServerId{0}, 0, ServerId{3}, 0);
  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->size(), 2U + 2 * 4 + 2 * 6);
  EXPECT_DOUBLE_EQ(shares->at(1).share, 1.0 / 4);
}

TEST(BuildGraph, KeepsPlanesApart) {
  // Two NICs of two ports each: rails 0 and 1 of the one plane, 2 and 3 of the other.
  const Cluster cluster = parse(
      "{tiers: [leaf, spine], rails: 4, planes: 2, servers_per_leaf: 1, spines: 4, uplink: "
      "1Gbps}",
      2, 4);
  const Graph graph = build_graph(cluster);
  EXPECT_EQ(uplinks_of(graph, "leaf5"), (std::vector<std::string>{"leaf5-spine0", "leaf5-spine1"}));
  EXPECT_EQ(uplinks_of(graph, "leaf2"), (std::vector<std::string>{"leaf2-spine2", "leaf2-spine3"}));
  EXPECT_EQ(uplinks_of_leaf(cluster.fabric), 2);
  EXPECT_TRUE(hop_count(graph, ServerId{0}, 2, ServerId{1}, 3));
  EXPECT_FALSE(hop_count(graph, ServerId{0}, 1, ServerId{1}, 2));
}

TEST(BuildGraph, LeavesRailsAloneThatAreAllPlanes) {
  const Graph graph = build_graph(parse("{tiers: [leaf], rails: 2, planes: 2}", 3, 2));
  EXPECT_EQ(count_kind(graph, NodeKind::kLeaf), 2U);
  EXPECT_TRUE(hop_count(graph, ServerId{0}, 1, ServerId{2}, 1));
}

TEST(BuildGraph, CablesEveryLeafToEverySpine) {
  const Graph graph = build_graph(make_cluster({.servers = 4, .per_leaf = 2, .spines = 2}));
  EXPECT_EQ(count_kind(graph, NodeKind::kLeaf), 2U);
  EXPECT_EQ(count_kind(graph, NodeKind::kSpine), 2U);
  EXPECT_EQ(graph.links.size(), 4U + 4U);
  EXPECT_EQ(graph.links.back().name, "leaf1-spine1");
}

TEST(BuildGraph, GivesEveryRailItsOwnLeaves) {
  const Graph graph =
      build_graph(make_cluster({.servers = 4, .per_leaf = 2, .rails = 2, .nics = 4, .spines = 3}));
  ASSERT_EQ(count_kind(graph, NodeKind::kLeaf), 4U);
  EXPECT_EQ(count_kind(graph, NodeKind::kSpine), 3U);
  for (const Link& link : graph.links) {
    if (link.a_nic < 0) continue;
    EXPECT_EQ(graph.nodes[link.b.index()].rail, link.a_nic % 2);
  }
  EXPECT_EQ(graph.links.size(), 16U + 12U);
}

TEST(BuildGraph, JoinsGroupsByPlanesOfSuperSpines) {
  // 8 blocks x 2 rails = 16 leaves, groups of 4: 4 groups x 2 spines, 2 planes of 3.
  const Graph graph = build_graph(make_cluster({.servers = 16,
                                                .per_leaf = 2,
                                                .rails = 2,
                                                .nics = 2,
                                                .spines = 2,
                                                .leaves_per_group = 4,
                                                .super_spines = 6}));
  EXPECT_EQ(count_kind(graph, NodeKind::kLeaf), 16U);
  EXPECT_EQ(count_kind(graph, NodeKind::kSpine), 8U);
  EXPECT_EQ(count_kind(graph, NodeKind::kSuperSpine), 6U);
  EXPECT_EQ(graph.links.size(), 32U + 32U + 24U);
  EXPECT_EQ(*hop_count(graph, ServerId{0}, 0, ServerId{1}, 0), 2);
  EXPECT_EQ(*hop_count(graph, ServerId{0}, 0, ServerId{2}, 0), 4);
  EXPECT_EQ(*hop_count(graph, ServerId{0}, 0, ServerId{2}, 1), 4);
  EXPECT_EQ(*hop_count(graph, ServerId{0}, 0, ServerId{4}, 0), 6);
}

TEST(BuildGraph, LeavesTheLastLeafPartlyFilled) {
  const Graph graph = build_graph(make_cluster({.servers = 5, .per_leaf = 2, .spines = 1}));
  EXPECT_EQ(count_kind(graph, NodeKind::kLeaf), 3U);
}

TEST(EcmpShares, SplitsEvenlyOverTheSpines) {
  const Graph graph = build_graph(make_cluster({.servers = 4, .per_leaf = 2, .spines = 2}));
  const auto shares = ecmp_shares(graph, ServerId{0}, 0, ServerId{2}, 0);
  ASSERT_TRUE(shares.has_value());
  ASSERT_EQ(shares->size(), 6U);
  EXPECT_DOUBLE_EQ(shares->front().share, 1);
  EXPECT_TRUE(shares->front().link.forward);
  EXPECT_DOUBLE_EQ((*shares)[1].share, 0.5);
  EXPECT_FALSE(shares->back().link.forward);
  EXPECT_TRUE(ecmp_shares(graph, ServerId{1}, 0, ServerId{1}, 0)->empty());
}

TEST(EcmpShares, FailsWhenRailsDoNotMeet) {
  Cluster cluster = make_cluster({.servers = 2, .per_leaf = 2, .rails = 1, .nics = 2});
  cluster.fabric.rails = 2;  // two leaves of one tier: what the parser refuses
  const Graph graph = build_graph(cluster);
  const auto shares = ecmp_shares(graph, ServerId{0}, 0, ServerId{1}, 1);
  ASSERT_FALSE(shares.has_value());
  EXPECT_EQ(shares.error().code, Code::kNotFound);
  EXPECT_FALSE(hop_count(graph, ServerId{0}, 0, ServerId{1}, 1).has_value());
  EXPECT_TRUE(next_hops(graph, graph.links[0].b, ServerId{1}, 1).empty());
}

// Random fabrics: every server reaches every other, what flows into a switch flows out, everything
// arrives, and next_hops() walks to the destination in hop_count() steps.
class Conservation : public ::testing::TestWithParam<unsigned> {};

void expect_flow_is_kept(const Graph& graph, ServerId from, ServerId to, int to_nic,
                         const std::vector<LinkShare>& shares) {
  std::map<int, double> surplus;  // by node: in - out
  for (const LinkShare& part : shares) {
    const Link& link = graph.links[part.link.link.index()];
    const NodeId tail = part.link.forward ? link.a : link.b;
    const NodeId head = part.link.forward ? link.b : link.a;
    EXPECT_GT(part.share, 0);
    EXPECT_LE(part.share, 1 + 1e-9);
    surplus[tail.value] -= part.share;
    surplus[head.value] += part.share;
  }
  for (const auto& [node, value] : surplus) {
    const double expected = node == from.value ? -1 : node == to.value ? 1 : 0;
    EXPECT_NEAR(value, expected, 1e-9) << graph.nodes[as_index(node)].name;
  }
  EXPECT_EQ(shares.back().link.link, nic_link(graph, to, to_nic));
}

void expect_walk_arrives(const Graph& graph, NodeId start, ServerId to, int to_nic, int hops) {
  NodeId at = start;
  for (int i = 0; i < hops; ++i) {
    const std::vector<LinkId> next = next_hops(graph, at, to, to_nic);
    ASSERT_FALSE(next.empty());
    EXPECT_TRUE(std::is_sorted(next.begin(), next.end()));
    const Link& link = graph.links[next[static_cast<std::size_t>(i) % next.size()].index()];
    at = link.a == at ? link.b : link.a;
  }
  EXPECT_EQ(at.value, to.value);
  EXPECT_TRUE(next_hops(graph, at, to, to_nic).empty());
}

TEST_P(Conservation, HoldsAtEveryNode) {
  std::mt19937 random(GetParam());
  const auto pick = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Shape shape{.servers = pick(2, 24),
              .per_leaf = pick(1, 5),
              .rails = pick(1, 3),
              .nics = 1,
              .spines = pick(1, 5),
              .leaves_per_group = 0,
              .super_spines = 0};
  shape.nics = shape.rails * pick(1, 2);
  if (pick(0, 1) == 1) {
    shape.leaves_per_group = shape.rails * pick(1, 3);
    shape.super_spines = shape.spines * pick(1, 3);
  }
  SCOPED_TRACE(fmt::format("seed {}", GetParam()));
  const Graph graph = build_graph(make_cluster(shape));
  for (int i = 0; i < 40; ++i) {
    const ServerId from{pick(0, shape.servers - 1)};
    const ServerId to{pick(0, shape.servers - 1)};
    const int from_nic = pick(0, shape.nics - 1);
    const int to_nic = pick(0, shape.nics - 1);
    const auto shares = ecmp_shares(graph, from, from_nic, to, to_nic);
    const auto hops = hop_count(graph, from, from_nic, to, to_nic);
    ASSERT_TRUE(shares.has_value()) << shares.error().message;
    ASSERT_TRUE(hops.has_value());
    if (from == to) continue;
    expect_flow_is_kept(graph, from, to, to_nic, *shares);
    const NodeId leaf = graph.links[nic_link(graph, from, from_nic).index()].b;
    expect_walk_arrives(graph, leaf, to, to_nic, *hops - 1);
    EXPECT_FALSE(next_hops(graph, NodeId{from.value}, to, to_nic).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Conservation, ::testing::Range(1U, 25U));

}  // namespace
}  // namespace regatta::topo
