// fabric/deadlock.h: whether lossless links can wait for each other in a cycle. A packet keeps its
// place in the buffer behind one link until there is room behind the next one on its path; where
// such dependencies close a cycle of buffers, pauses may stop all of them for good, and where they
// do not, no traffic can make them. Source: Dally and Seitz, "Deadlock-free message routing in
// multiprocessor interconnection networks", 1987; for fabrics with pauses: Hu et al., "Deadlocks in
// datacenter networks: why do they form, and how to avoid them", HotNets 2016.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
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

// Traffic that makes a cycle of waits (deadlock.h) come true: sent
// packet by packet, it stops for good. That a cycle is possible does not say that it closes; this
// shows it.

struct DeadlockWitness {
  DependencyCycle deadlock;  // links that wait for each other for ever; empty: it did not close
  Seconds quiescent_at;      // nothing moved any more
  std::size_t messages = 0;  // that were sent
  std::size_t arrived = 0;   // of these
  Bytes bytes;               // of each
};

// For each wait of the cycle, from as many NICs as are found, messages that come over its link and
// go on over the next one; more of them until they stop. `seeds`: of the switches' hashes, by
// NodeId. Deterministic. Fails with kNotFound where no traffic goes over some wait.
Result<DeadlockWitness> find_deadlock_witness(const topo::Graph& graph, const Routes& routes,
                                              std::span<const std::uint32_t> seeds,
                                              const DependencyCycle& cycle);

// Whether lossless links can wait for each other in a cycle (deadlock.h) once
// links or switches have failed and traffic goes the shortest paths that are left.

// What fails together: links between two switches, and switches with all their links.
struct FailureSet {
  std::vector<LinkId> links;
  std::vector<NodeId> switches;
};

struct FailureOptions {
  int at_once = 1;  // failures at the same time, 1 or more
  bool switches = true;
  // Single failures are all looked at; of more sets than these so many are drawn, each one by
  // itself, so that one may come twice.
  std::size_t most_sets = 100'000;
  std::uint64_t seed = 1;
  std::function<void(std::size_t done, std::size_t all)> progress;  // may be empty
};

struct FailureCheck {
  double sets = 0;          // of so many failures at once that there are
  std::size_t checked = 0;  // fewer where they were drawn, or ended at a cycle
  bool is_sample = false;   // they were drawn
  // Of these, those that led traffic over paths it did not take before, and those after which a
  // leaf that works cannot reach another one any more. Some do both.
  std::size_t rerouted = 0;
  std::size_t unreachable = 0;
  std::optional<FailureSet> failed;  // the first ones after which there is a cycle
  std::optional<DependencyCycle> cycle;
};

// After each set of so many failures, until one makes a cycle possible. `graph` must have none
// without failures, by its shortest paths.
FailureCheck check_failures(const topo::Graph& graph, const FailureOptions& options = {});

// The graph without what failed, which keeps its numbers.
topo::Graph without(const topo::Graph& graph, const FailureSet& failed);

// Which routes that somebody wrote lose their path once links or switches
// have failed: switches leave out what failed beside them, and reroute nothing.

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
