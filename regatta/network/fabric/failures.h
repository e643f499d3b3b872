// fabric/failures.h: whether lossless links can wait for each other in a cycle (deadlock.h) once
// links or switches have failed and traffic goes the shortest paths that are left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"

namespace regatta::fabric {

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

}  // namespace regatta::fabric
