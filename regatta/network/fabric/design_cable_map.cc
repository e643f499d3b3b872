#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "regatta/network/fabric/design.h"

namespace regatta::fabric {

void for_each_cable(const topo::Graph& graph, const std::function<void(const CableEntry&)>& take) {
  // Links of a switch to what is below it come first, in the order of these (topo/graph.h).
  std::vector<int> used(graph.nodes.size(), 0);
  const auto next_port = [&](NodeId node) { return std::to_string(++used[node.index()]); };
  for (const topo::Link& link : graph.links) {
    const topo::Node& low = graph.nodes[link.a.index()];
    const topo::Node& high = graph.nodes[link.b.index()];
    std::string_view kind = "server-leaf";
    if (low.kind == topo::NodeKind::kLeaf) kind = "leaf-spine";
    if (low.kind == topo::NodeKind::kSpine) kind = "spine-super";
    take({.low = {low.name, link.a_nic >= 0 ? fmt::format("nic{}", link.a_nic) : next_port(link.a)},
          .high = {high.name, next_port(link.b)},
          .rate = link.rate,
          .kind = kind,
          .label = link.name});
  }
}

std::string cable_heading() {
  return "device,port,device,port,rate,kind,label\n";
}

std::string cable_line(const CableEntry& cable) {
  return fmt::format("{},{},{},{},{}Gbps,{},{}\n", cable.low.device, cable.low.port,
                     cable.high.device, cable.high.port, cable.rate.value * 8 / 1e9, cable.kind,
                     cable.label);
}

}  // namespace regatta::fabric
