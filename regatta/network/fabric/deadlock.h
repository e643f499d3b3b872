// fabric/deadlock.h: whether lossless links can wait for each other in a cycle. A packet keeps its
// place in the buffer behind one link until there is room behind the next link of its path. Where
// such dependencies form a cycle of buffers, pauses may stop all of them for good; without a cycle,
// no traffic can deadlock. Source: Dally and Seitz, "Deadlock-free message routing in
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

// Directed links (number_of()), each of which waits for the next one, the last one for the first.
using DependencyCycle = std::vector<std::uint32_t>;

// A cycle of dependencies that traffic between servers can cause under these routes; none: they
// cannot deadlock.
std::optional<DependencyCycle> find_dependency_cycle(const topo::Graph& graph,
                                                     const Routes& routes);

struct DeadlockCheck {
  std::optional<DependencyCycle> cycle;
  std::size_t links = 0;         // directed links between switches
  std::size_t dependencies = 0;  // pairs of links of which the first may wait for the second
  std::size_t bounces = 0;       // dependencies that lead down a tier and up again
  // Without a cycle, the proof that there is none: every link waits only for links of later layers.
  // The number of links per layer.
  std::vector<std::size_t> layers;
};

// The same, with its proof.
DeadlockCheck check_deadlock(const topo::Graph& graph, const Routes& routes);

// The leaf whose traffic, on any path from another leaf, crosses `link` and then `next`: it makes
// the first wait for the second. None: no traffic does.
std::optional<NodeId> cause_of_dependency(const topo::Graph& graph, const Routes& routes,
                                          std::uint32_t link, std::uint32_t next);

// A deadlock witness: traffic that, simulated packet by packet, deadlocks on a given cycle of
// dependencies. It shows that the cycle does not only exist, but also closes.

struct DeadlockWitness {
  DependencyCycle deadlock;  // links that wait for each other for ever; empty: it did not close
  Seconds quiescent_at;      // nothing moved from then on
  std::size_t messages = 0;  // sent
  std::size_t arrived = 0;   // messages
  Bytes bytes;               // of each message
};

// For each dependency of the cycle, as many NICs as are found send messages over its link and then
// the next one; the number of messages grows until they deadlock. `seeds`: of the switches' hashes,
// by NodeId. Deterministic. Fails with kNotFound where no traffic is found for some dependency.
Result<DeadlockWitness> find_deadlock_witness(const topo::Graph& graph, const Routes& routes,
                                              std::span<const std::uint32_t> seeds,
                                              const DependencyCycle& cycle);

// Whether lossless links can deadlock once links or switches have failed and traffic takes the
// shortest paths that are left.

// A set of joint failures: links between two switches, and switches with all their links.
struct FailureSet {
  std::vector<LinkId> links;
  std::vector<NodeId> switches;
};

struct FailureOptions {
  int at_once = 1;  // failures at the same time, 1 or more
  bool switches = true;
  // All single failures are checked. Where there are more sets of several failures than this, so
  // many are drawn independently, and one may come twice.
  std::size_t most_sets = 100'000;
  std::uint64_t seed = 1;
  std::function<void(std::size_t done, std::size_t all)> progress;  // may be empty
};

struct FailureCheck {
  double sets = 0;          // possible sets of so many failures
  std::size_t checked = 0;  // fewer where sets were drawn, or the check ended at a cycle
  bool is_sample = false;   // the sets were drawn
  // Checked sets that moved traffic to new paths, and sets after which a working leaf cannot reach
  // another one. Some do both.
  std::size_t rerouted = 0;
  std::size_t unreachable = 0;
  std::optional<FailureSet> failed;  // the first set after which there is a cycle
  std::optional<DependencyCycle> cycle;
};

// Checks each set of so many failures, until one makes a cycle possible. Without failures, the
// shortest paths of `graph` must have no cycle.
FailureCheck check_failures(const topo::Graph& graph, const FailureOptions& options = {});

// The graph without the failed links and switches; the others keep their numbers.
topo::Graph without(const topo::Graph& graph, const FailureSet& failed);

// Which explicit routes lose their path once links or switches have failed: switches leave out
// failed next hops, and reroute nothing.

// Traffic to servers of `to` reaches `at`, which has no next hop left for it.
struct LostRoute {
  FailureSet failed;
  NodeId at;
  NodeId to;
};

struct RouteFailureCheck {
  double sets = 0;          // possible sets of so many failures
  std::size_t checked = 0;  // fewer where sets were drawn
  bool is_sample = false;
  std::size_t losing = 0;       // checked sets after which some route has no path
  std::vector<LostRoute> lost;  // one for each of the first of them
};

// Checks each set of so many failures. Failures only remove dependencies: routes without a cycle
// have none afterwards either. At most `most_named` routes are named.
RouteFailureCheck check_route_failures(const topo::Graph& graph, const Routes& routes,
                                       const FailureOptions& options = {},
                                       std::size_t most_named = 10);

}  // namespace regatta::fabric
