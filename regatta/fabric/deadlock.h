// fabric/deadlock.h: whether lossless links can wait for each other in a circle. A packet keeps its
// place in the buffer behind one link until there is room behind the next one on its way; where
// such waits close a circle of buffers, pauses may stop all of them for good, and where they do
// not, no traffic can make them. Source: Dally and Seitz, "Deadlock-free message routing in
// multiprocessor interconnection networks", 1987; for fabrics with pauses: Hu et al., "Deadlocks in
// datacenter networks: why do they form, and how to avoid them", HotNets 2016.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/core/ids.h"
#include "regatta/fabric/routes.h"
#include "regatta/topo/graph.h"

namespace regatta::fabric {

// Directed links (number_of()), each of which waits for the next one, the last one for the first.
using Circle = std::vector<std::uint32_t>;

// A circle of waits that traffic between servers can cause under these routes; none: they cannot
// deadlock.
std::optional<Circle> find_circle(const topo::Graph& graph, const Routes& routes);

struct FailureCheck {
  std::size_t failures = 0;      // of one link between switches each
  std::size_t rerouted = 0;      // of these, those that led traffic ways it did not go before
  std::size_t unreachable = 0;   // those after which some leaf cannot be reached from another
  std::optional<LinkId> failed;  // the first one after which there is a circle
  std::optional<Circle> circle;
};

// The same after each failure of a single link between two switches, with the shortest ways that
// are left. `graph` must have none without failures.
FailureCheck check_single_failures(const topo::Graph& graph);

}  // namespace regatta::fabric
