#include "regatta/model/topo/graph.h"

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"

namespace regatta::topo {
namespace {

NodeId add_node(Graph& graph, Node node) {
  graph.nodes.push_back(std::move(node));
  graph.links_of.emplace_back();
  return {static_cast<int>(graph.nodes.size()) - 1};
}

// `cable`: which one of several between the same nodes.
void add_link(Graph& graph, Link link, int cable = 0) {
  const LinkId id{static_cast<int>(graph.links.size())};
  const std::string& a = graph.nodes[link.a.index()].name;
  const std::string& b = graph.nodes[link.b.index()].name;
  link.name = link.a_nic >= 0 ? fmt::format("{}.nic{}-{}", a, link.a_nic, b) : a + "-" + b;
  if (cable > 0) link.name += fmt::format(".{}", cable);
  graph.links_of[link.a.index()].push_back(id);
  graph.links_of[link.b.index()].push_back(id);
  graph.links.push_back(std::move(link));
}

// Leaf (block, rail) is leaves[block * rails + rail].
std::vector<NodeId> add_leaves(Graph& graph, const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  const int servers = static_cast<int>(cluster.servers.size());
  const int blocks = (servers + fabric.servers_per_leaf - 1) / fabric.servers_per_leaf;
  const int count = blocks * fabric.rails;
  const int per_group =
      fabric.tiers == 3 && fabric.leaves_per_group > 0 ? fabric.leaves_per_group : count;
  std::vector<NodeId> leaves;
  leaves.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    leaves.push_back(add_node(graph, {.kind = NodeKind::kLeaf,
                                      .name = fmt::format("leaf{}", i),
                                      .rail = i % fabric.rails,
                                      .group = i / per_group}));
  }
  return leaves;
}

void cable_servers(Graph& graph, const Cluster& cluster, const std::vector<NodeId>& leaves) {
  const Fabric& fabric = cluster.fabric;
  for (int s = 0; s < static_cast<int>(cluster.servers.size()); ++s) {
    const ServerType& type = cluster.type_of(ServerId{s});
    const int block = s / fabric.servers_per_leaf;
    for (int nic = 0; nic < type.nic_count; ++nic) {
      const int leaf = block * fabric.rails + nic % fabric.rails;
      add_link(graph, {.a = NodeId{s},
                       .b = at(leaves, leaf),
                       .a_nic = nic,
                       .rate = type.nic_rate,
                       .latency = fabric.hop_latency,
                       .name = {}});
    }
  }
}

// Spine j of group g is spines[g * fabric.spines + j].
std::vector<NodeId> add_spines(Graph& graph, const Fabric& fabric,
                               const std::vector<NodeId>& leaves) {
  const int groups = graph.nodes[leaves.back().index()].group + 1;
  std::vector<NodeId> spines;
  spines.reserve(static_cast<std::size_t>(groups * fabric.spines));
  for (int i = 0; i < groups * fabric.spines; ++i) {
    spines.push_back(add_node(graph, {.kind = NodeKind::kSpine,
                                      .name = fmt::format("spine{}", i),
                                      .rail = -1,
                                      .group = i / fabric.spines}));
  }
  const int per_plane = fabric.spines / fabric.planes;
  for (const NodeId leaf : leaves) {
    const Node& node = graph.nodes[leaf.index()];
    const int plane = node.rail * fabric.planes / fabric.rails;
    const int first = node.group * fabric.spines + plane * per_plane;
    for (int i = 0; i < per_plane * fabric.uplink_cables; ++i) {
      add_link(graph,
               {.a = leaf,
                .b = at(spines, first + i / fabric.uplink_cables),
                .a_nic = -1,
                .rate = fabric.uplink,
                .latency = fabric.hop_latency,
                .name = {}},
               i % fabric.uplink_cables);
    }
  }
  return spines;
}

// Column j holds spine j of every group and super_spines / spines super-spines.
void add_super_spines(Graph& graph, const Fabric& fabric, const std::vector<NodeId>& spines) {
  const int per_column = fabric.super_spines / fabric.spines;
  std::vector<NodeId> supers;
  supers.reserve(static_cast<std::size_t>(fabric.super_spines));
  for (int i = 0; i < fabric.super_spines; ++i) {
    supers.push_back(add_node(graph, {.kind = NodeKind::kSuperSpine,
                                      .name = fmt::format("super{}", i),
                                      .rail = -1,
                                      .group = -1}));
  }
  for (std::size_t i = 0; i < spines.size(); ++i) {
    const int first = static_cast<int>(i) % fabric.spines * per_column;
    for (int k = 0; k < per_column * fabric.super_uplink_cables; ++k) {
      add_link(graph,
               {.a = spines[i],
                .b = at(supers, first + k / fabric.super_uplink_cables),
                .a_nic = -1,
                .rate = fabric.super_uplink,
                .latency = fabric.hop_latency,
                .name = {}},
               k % fabric.super_uplink_cables);
    }
  }
}

NodeId other_end(const Link& link, NodeId node) {
  return link.a == node ? link.b : link.a;
}

bool is_switch(const Graph& graph, NodeId node) {
  return graph.nodes[node.index()].kind != NodeKind::kServer;
}

// The NIC links of server `node` whose leaf is nearest to the target of `distance`.
std::vector<LinkId> nearest_nics(const Graph& graph, NodeId node,
                                 const std::vector<int>& distance) {
  std::vector<LinkId> links;
  int best = kUnreachable;
  for (const LinkId id : graph.links_of[node.index()]) {
    const int here = distance[other_end(graph.links[id.index()], node).index()];
    if (here == kUnreachable || here > best) continue;
    if (here < best) links.clear();
    best = here;
    links.push_back(id);
  }
  return links;
}

NodeId leaf_of(const Graph& graph, ServerId server, int nic) {
  return graph.links[nic_link(graph, server, nic).index()].b;
}

Error no_path(const Graph& graph, ServerId from, int from_nic, ServerId to, int to_nic) {
  return {Code::kNotFound, fmt::format("{}.nic{} has no path to {}.nic{}; their leaves share no "
                                       "spine, so add a tier to the fabric",
                                       graph.nodes[from.index()].name, from_nic,
                                       graph.nodes[to.index()].name, to_nic)};
}

}  // namespace

std::vector<int> distances_to(const Graph& graph, NodeId target) {
  std::vector<int> distance(graph.nodes.size(), kUnreachable);
  std::deque<NodeId> open{target};
  distance[target.index()] = 0;
  while (!open.empty()) {
    const NodeId node = open.front();
    open.pop_front();
    for (const LinkId id : graph.links_of[node.index()]) {
      const NodeId next = other_end(graph.links[id.index()], node);
      if (!is_switch(graph, next) || distance[next.index()] != kUnreachable) continue;
      distance[next.index()] = distance[node.index()] + 1;
      open.push_back(next);
    }
  }
  return distance;
}

std::vector<LinkId> next_hop_links(const Graph& graph, NodeId node,
                                   const std::vector<int>& distance) {
  std::vector<LinkId> links;
  for (const LinkId id : graph.links_of[node.index()]) {
    const NodeId next = other_end(graph.links[id.index()], node);
    const int there = distance[next.index()];
    if (is_switch(graph, next) && there != kUnreachable && there + 1 == distance[node.index()])
      links.push_back(id);
  }
  return links;
}

Graph build_graph(const Cluster& cluster) {
  Graph graph;
  for (const Server& server : cluster.servers)
    add_node(graph, {.kind = NodeKind::kServer, .name = server.name, .rail = -1, .group = -1});
  const Fabric& fabric = cluster.fabric;
  if (fabric.tiers == 0 || cluster.servers.empty()) return graph;
  REGATTA_CHECK(fabric.servers_per_leaf > 0 && fabric.rails > 0);
  const std::vector<NodeId> leaves = add_leaves(graph, cluster);
  cable_servers(graph, cluster, leaves);
  if (fabric.tiers == 1) return graph;
  REGATTA_CHECK(fabric.spines > 0);
  const std::vector<NodeId> spines = add_spines(graph, fabric, leaves);
  if (fabric.tiers == 3) add_super_spines(graph, fabric, spines);
  return graph;
}

LinkId nic_link(const Graph& graph, ServerId server, int nic) {
  for (const LinkId id : graph.links_of[server.index()]) {
    if (graph.links[id.index()].a_nic == nic) return id;
  }
  REGATTA_CHECK(false && "the server has this NIC");
  return {};
}

Result<std::vector<LinkShare>> ecmp_shares(const Graph& graph, ServerId from, int from_nic,
                                           ServerId to, int to_nic) {
  std::vector<LinkShare> shares;
  if (from == to) return shares;
  const NodeId target = leaf_of(graph, to, to_nic);
  const NodeId start = leaf_of(graph, from, from_nic);
  const std::vector<int> distance = distances_to(graph, target);
  if (distance[start.index()] == kUnreachable) return no_path(graph, from, from_nic, to, to_nic);
  shares.push_back({{nic_link(graph, from, from_nic), true}, 1});
  // All nodes of one layer are equally far from the target, so a layer is complete before the next.
  std::map<NodeId, double> layer{{start, 1.0}};
  while (!layer.contains(target)) {
    std::map<NodeId, double> next;
    for (const auto& [node, share] : layer) {
      const std::vector<LinkId> hops = next_hop_links(graph, node, distance);
      const double part = share / static_cast<double>(hops.size());
      for (const LinkId id : hops) {
        const Link& link = graph.links[id.index()];
        shares.push_back({{id, link.a == node}, part});
        next[other_end(link, node)] += part;
      }
    }
    layer = std::move(next);
  }
  shares.push_back({{nic_link(graph, to, to_nic), false}, 1});
  return shares;
}

Result<int> hop_count(const Graph& graph, ServerId from, int from_nic, ServerId to, int to_nic) {
  if (from == to) return 0;
  const std::vector<int> distance = distances_to(graph, leaf_of(graph, to, to_nic));
  const int between = distance[leaf_of(graph, from, from_nic).index()];
  if (between == kUnreachable) return no_path(graph, from, from_nic, to, to_nic);
  return between + 2;
}

std::vector<LinkId> next_hops(const Graph& graph, NodeId node, ServerId to, int to_nic) {
  if (node.value == to.value) return {};
  const NodeId target = leaf_of(graph, to, to_nic);
  if (node == target) return {nic_link(graph, to, to_nic)};
  const std::vector<int> distance = distances_to(graph, target);
  if (!is_switch(graph, node)) return nearest_nics(graph, node, distance);
  return next_hop_links(graph, node, distance);
}

}  // namespace regatta::topo
