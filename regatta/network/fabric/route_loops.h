// fabric/route_loops.h: routes that lead packets in a loop, so that they never arrive.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {

struct RouteLoop {
  NodeId leaf;                       // whose traffic it is
  std::vector<std::uint32_t> links;  // number_of(), each begins where the one before ends
};

// One that traffic between servers can come into; none: all of it arrives, or stops where a switch
// has no next hop.
std::optional<RouteLoop> find_loop(const topo::Graph& graph, const Routes& routes);

}  // namespace regatta::fabric
