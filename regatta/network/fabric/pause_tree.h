// fabric/pause_tree.h: where pauses come from. A link that is paused pauses the links that feed it,
// once the switch between is full of what came by them: so pauses spread as a tree, from a NIC that
// lets nothing in, a switch that more comes to than leaves it, or a cycle of links that wait for
// each other.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"

namespace regatta::fabric {

struct PauseTree {
  std::uint32_t root = 0;  // the node that it begins at, by NodeId; with a cycle: any of it
  DependencyCycle cycle;   // of links that wait for each other; empty: there is none
  std::vector<std::uint32_t> links;  // that are held, by number_of(), the nearest first

  friend bool operator==(const PauseTree&, const PauseTree&) = default;
};

// The trees of all links that are held; each link is in one, that of the root nearest to it.
// waits_for(link): which of them what came by it waits for at its end, if any.
std::vector<PauseTree> pause_trees(
    const std::vector<std::uint32_t>& held,
    const std::function<std::vector<std::uint32_t>(std::uint32_t link)>& waits_for,
    const std::function<std::uint32_t(std::uint32_t link)>& end_of);

// The same from counters, which do not say what waits: what came by a link may wait for all links
// that are held where it ends, but for the one back.
std::vector<PauseTree> pause_trees(const topo::Graph& graph,
                                   const std::vector<std::uint32_t>& held);

}  // namespace regatta::fabric
