#include "regatta/model/topo/fabric_summary.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace regatta::topo {
namespace {

void count_nodes(const Graph& graph, FabricSummary& summary) {
  for (const Node& node : graph.nodes) {
    summary.leaves += node.kind == NodeKind::kLeaf ? 1 : 0;
    summary.spines += node.kind == NodeKind::kSpine ? 1 : 0;
    summary.super_spines += node.kind == NodeKind::kSuperSpine ? 1 : 0;
    summary.groups = std::max(summary.groups, node.group + 1);
  }
}

// The sum of the rates of all links of one tier, per direction.
struct TierRates {
  BytesPerSecond servers;
  BytesPerSecond leaves;
  BytesPerSecond spines;
};

TierRates count_links(const Graph& graph, FabricSummary& summary) {
  TierRates rates;
  for (const Link& link : graph.links) {
    switch (graph.nodes[link.a.index()].kind) {
      case NodeKind::kServer:
        ++summary.server_links;
        rates.servers += link.rate;
        break;
      case NodeKind::kLeaf:
        ++summary.leaf_uplinks;
        rates.leaves += link.rate;
        break;
      case NodeKind::kSpine:
      case NodeKind::kSuperSpine:
        ++summary.spine_uplinks;
        rates.spines += link.rate;
        break;
    }
  }
  return rates;
}

double worst_oversubscription(const Graph& graph, NodeKind kind) {
  double worst = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].kind != kind) continue;
    BytesPerSecond down;
    BytesPerSecond up;
    for (const LinkId id : graph.links_of[n]) {
      const Link& link = graph.links[id.index()];
      (link.b.index() == n ? down : up) += link.rate;
    }
    if (up.value > 0) worst = std::max(worst, down / up);
  }
  return worst;
}

void add_distance(const Graph& graph, const std::string& name, int server, FabricSummary& summary) {
  if (server <= 0 || server >= summary.servers) return;
  const auto hops = hop_count(graph, ServerId{0}, 0, ServerId{server}, 0);
  const auto shares = ecmp_shares(graph, ServerId{0}, 0, ServerId{server}, 0);
  if (!hops || !shares) return;
  const Seconds latency = graph.links.front().latency;  // the same on every link
  Distance distance{.to = name,
                    .hops = *hops,
                    .latency = latency * *hops,
                    .narrowest = {std::numeric_limits<double>::max()}};
  for (const LinkShare& share : *shares)
    distance.narrowest = std::min(distance.narrowest, graph.links[share.link.link.index()].rate);
  summary.distances.push_back(distance);
}

void count_domains(const Cluster& cluster, FabricSummary& summary) {
  const std::vector<int> domains = scale_up_domains(cluster);
  const ScaleUp* first = nullptr;
  std::map<int, int> devices;
  for (std::size_t s = 0; s < domains.size(); ++s) {
    const ServerType& type = cluster.type_of(ServerId{static_cast<int>(s)});
    if (type.scale_up.servers <= 1) continue;
    if (s == 0) first = &type.scale_up;
    devices[domains[s]] += type.device_count;
  }
  summary.domains = static_cast<int>(devices.size());
  for (const auto& [domain, count] : devices)
    summary.domain_devices = std::max(summary.domain_devices, count);
  constexpr int kHops = 2;  // to a switch and from it
  if (first != nullptr) {
    summary.distances.push_back({.to = "same domain",
                                 .hops = kHops,
                                 .latency = first->latency,
                                 .narrowest = first->bandwidth});
  }
}

}  // namespace

FabricSummary summarize_fabric(const Cluster& cluster, const Graph& graph) {
  const Fabric& fabric = cluster.fabric;
  FabricSummary summary;
  summary.tiers = fabric.tiers;
  summary.rails = fabric.rails;
  summary.planes = fabric.planes;
  summary.servers = static_cast<int>(cluster.servers.size());
  summary.devices = static_cast<int>(all_devices(cluster).size());
  count_domains(cluster, summary);
  count_nodes(graph, summary);
  const TierRates rates = count_links(graph, summary);
  if (fabric.tiers == 0) return summary;
  summary.leaf_oversubscription = worst_oversubscription(graph, NodeKind::kLeaf);
  summary.spine_oversubscription = worst_oversubscription(graph, NodeKind::kSpine);

  summary.bisection = rates.servers / 2;
  const bool many_blocks = summary.leaves > fabric.rails;
  if (many_blocks && fabric.tiers >= 2)
    summary.bisection = std::min(summary.bisection, rates.leaves / 2);
  if (summary.groups > 1) summary.bisection = std::min(summary.bisection, rates.spines / 2);

  add_distance(graph, "same leaf", fabric.servers_per_leaf > 1 ? 1 : 0, summary);
  const int blocks_per_group = fabric.tiers == 3 && fabric.leaves_per_group > 0
                                   ? fabric.leaves_per_group / fabric.rails
                                   : summary.leaves / fabric.rails;
  if (blocks_per_group > 1) add_distance(graph, "other leaf", fabric.servers_per_leaf, summary);
  add_distance(graph, "other group", blocks_per_group * fabric.servers_per_leaf, summary);
  return summary;
}

}  // namespace regatta::topo
