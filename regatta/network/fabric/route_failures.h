// fabric/route_failures.h: which routes that somebody wrote lose their path once links or switches
// have failed: switches leave out what failed beside them, and reroute nothing.
#pragma once

#include <cstddef>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/failures.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {

// Traffic to servers of `to` comes to `at`, which has no next hop left for it.
struct LostRoute {
  FailureSet failed;
  NodeId at;
  NodeId to;
};

struct RouteFailureCheck {
  double sets = 0;          // of so many failures at once that there are
  std::size_t checked = 0;  // fewer where they were drawn
  bool is_sample = false;
  std::size_t losing = 0;       // of these, sets after which some route has no path
  std::vector<LostRoute> lost;  // of the first of them, one each
};

// After each set of so many failures. Waits only become fewer by them: where the routes have no
// cycle (deadlock.h) there is none afterwards either. At most `most_named` routes are named.
RouteFailureCheck check_route_failures(const topo::Graph& graph, const Routes& routes,
                                       const FailureOptions& options = {},
                                       std::size_t most_named = 10);

}  // namespace regatta::fabric
