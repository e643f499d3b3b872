// fabric/directed_links.h: the directions of a graph's links by number, as paths and routes give
// them. Pure.
#pragma once

#include <cstdint>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"

namespace regatta::fabric {

// The number of a direction of a link in what links_of() gives: 2 link, and 1 from b to a.
inline std::uint32_t number_of(topo::DirectedLink link) {
  return 2 * static_cast<std::uint32_t>(link.link.value) + (link.forward ? 0 : 1);
}

// The direction that has this number.
inline topo::DirectedLink directed_link(std::uint32_t number) {
  return {LinkId{static_cast<int>(number / 2)}, number % 2 == 0};
}

// Where what is sent over a directed link comes from.
inline NodeId tail_of(const topo::Graph& graph, std::uint32_t link) {
  const topo::Link& cable = graph.links[link / 2];
  return link % 2 == 0 ? cable.a : cable.b;
}

// Where it comes to.
inline NodeId head_of(const topo::Graph& graph, std::uint32_t link) {
  return tail_of(graph, link ^ 1U);
}

}  // namespace regatta::fabric
