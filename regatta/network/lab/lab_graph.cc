// The network of a lab as a graph, from what its holder tells.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/core.h>

#include "regatta/network/lab/internal/state.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {
namespace {

topo::NodeKind kind_of(const LabInfo& lab, const std::string& name) {
  const bool is_server = std::ranges::any_of(
      lab.servers, [&](const LabServer& server) { return server.name == name; });
  if (is_server) return topo::NodeKind::kServer;
  if (name.starts_with("leaf")) return topo::NodeKind::kLeaf;
  return name.starts_with("spine") ? topo::NodeKind::kSpine : topo::NodeKind::kSuperSpine;
}

}  // namespace

Result<topo::Graph> graph_of(const LabInfo& lab) {
  REGATTA_TRY(state, living_state(lab));
  REGATTA_TRY(links, link_states(lab));
  topo::Graph graph;
  std::map<std::string, NodeId> nodes;
  for (const NodeState& node : state.nodes) {
    nodes[node.name] = NodeId{static_cast<int>(graph.nodes.size())};
    graph.nodes.push_back({kind_of(lab, node.name), node.name, -1, -1});
  }
  graph.links_of.resize(graph.nodes.size());
  // "s0 nic0": node and interface.
  const auto node_of = [&](const std::string& port) {
    return nodes.at(port.substr(0, port.find(' ')));
  };
  for (const LinkState& state_of : links) {
    topo::Link link;
    link.a = node_of(state_of.a);
    link.b = node_of(state_of.b);
    const std::string port = state_of.a.substr(state_of.a.find(' ') + 1);
    if (port.starts_with("nic")) link.a_nic = std::stoi(port.substr(3));
    link.rate = state_of.described_rate;
    link.name = state_of.name;
    const LinkId id{static_cast<int>(graph.links.size())};
    for (const NodeId end : {link.a, link.b})
      graph.links_of[end.index()].push_back(id);
    graph.links.push_back(std::move(link));
  }
  return graph;
}

}  // namespace regatta::lab
