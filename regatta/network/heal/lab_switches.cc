#include "regatta/network/heal/lab_switches.h"

namespace regatta::heal {

Result<std::unique_ptr<LinuxSwitches>> open_lab_switches(const lab::LabInfo& lab,
                                                         const topo::Graph& graph,
                                                         const FabricPaths& paths) {
  std::vector<SwitchSpace> spaces;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind == topo::NodeKind::kServer) continue;
    REGATTA_TRY(space, lab::open_network(lab, graph.nodes[i].name));
    spaces.push_back({NodeId{static_cast<int>(i)}, std::move(space)});
  }
  return LinuxSwitches::open(graph, paths, std::move(spaces));
}

}  // namespace regatta::heal
