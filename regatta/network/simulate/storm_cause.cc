#include "regatta/network/simulate/storm_cause.h"

#include <fmt/format.h>

namespace regatta::simulate {

std::string storm_root_name(const SimulatedNetwork& network, const fabric::PauseTree& tree) {
  return network.graph.nodes[tree.root].name;
}

std::string storm_cause_text(const SimulatedNetwork& network, const fabric::PauseTree& tree) {
  const topo::Node& root = network.graph.nodes[tree.root];
  if (!tree.cycle.empty())
    return fmt::format("{} links wait for each other in a circle", tree.cycle.size());
  if (root.kind == topo::NodeKind::kServer)
    return fmt::format("a NIC of {} lets nothing in ({})", root.name,
                       network.link_name(tree.links.front()));
  return fmt::format("more comes to {} than leaves it", root.name);
}

}  // namespace regatta::simulate
