// fabric/deadlock.h: whether lossless links can wait for each other in a cycle. A packet keeps its
// place in the buffer behind one link until there is room behind the next one on its path; where
// such dependencies close a cycle of buffers, pauses may stop all of them for good, and where they
// do not, no traffic can make them. Source: Dally and Seitz, "Deadlock-free message routing in
// multiprocessor interconnection networks", 1987; for fabrics with pauses: Hu et al., "Deadlocks in
// datacenter networks: why do they form, and how to avoid them", HotNets 2016.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {

// Directed links (number_of()), each of which dependencies for the next one, the last one for the
// first.
using DependencyCycle = std::vector<std::uint32_t>;

// A cycle of dependencies that traffic between servers can cause under these routes; none: they
// cannot deadlock.
std::optional<DependencyCycle> find_dependency_cycle(const topo::Graph& graph,
                                                     const Routes& routes);

struct DeadlockCheck {
  std::optional<DependencyCycle> cycle;
  std::size_t links = 0;         // between switches, each direction for itself
  std::size_t dependencies = 0;  // pairs of links of which the first may wait for the second
  std::size_t bounces = 0;       // of these, those that lead down a tier and up again
  // Without a cycle, the proof that there is none: every link dependencies only for links of later
  // layers. Per layer, its links.
  std::vector<std::size_t> layers;
};

// The same, and what it rests on.
DeadlockCheck check_deadlock(const topo::Graph& graph, const Routes& routes);

// The leaf whose traffic comes over `link` and goes on over `next`, by any path from another leaf:
// what makes the first wait for the second. None: no traffic does.
std::optional<NodeId> cause_of_dependency(const topo::Graph& graph, const Routes& routes,
                                          std::uint32_t link, std::uint32_t next);

}  // namespace regatta::fabric
