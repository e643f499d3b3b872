#include "regatta/model/topo/graph_names.h"

#include <algorithm>

#include <fmt/format.h>

namespace regatta::topo {

std::optional<LinkId> find_link(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.links, name, &Link::name);
  if (found == graph.links.end()) return std::nullopt;
  return LinkId{static_cast<int>(found - graph.links.begin())};
}

std::optional<NodeId> find_node(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.nodes, name, &Node::name);
  if (found == graph.nodes.end()) return std::nullopt;
  return NodeId{static_cast<int>(found - graph.nodes.begin())};
}

std::string directed_link_name(const Graph& graph, std::uint32_t directed_link) {
  return graph.links[directed_link / 2].name + (directed_link % 2 == 0 ? " up" : " down");
}

std::string to_string(const Graph& graph, DirectedLink link) {
  const Link& cable = graph.links[link.link.index()];
  const NodeId from = link.forward ? cable.a : cable.b;
  const NodeId to = link.forward ? cable.b : cable.a;
  return fmt::format("{} from {} to {}", cable.name, graph.nodes[from.index()].name,
                     graph.nodes[to.index()].name);
}

}  // namespace regatta::topo
