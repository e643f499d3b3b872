// plan/internal/placement/placement_search.h: which slot goes under which leaf: one by one, to
// check the rest with, and by construction and exchanges of two, for clusters of any size.
#pragma once

#include "regatta/planning/plan/internal/placement/placement_problem.h"

namespace regatta::plan {

// Slots in order onto the usable servers in order.
LeafAssignment rank_order_assignment(const PlacementProblem& network);

// All of them, less those that cannot be below the best so far: for a dozen servers.
LeafAssignment exhaustive_assignment(const PlacementProblem& network);

struct PlacementSearchLimits {
  unsigned seed = 1;
  long long evaluations = 1'500'000;  // of changes, in all
  double enough = 0;                  // seconds: no placement takes less
};
struct SearchedAssignment {
  LeafAssignment leaf_of;
  long long evaluations = 0;
};
// Tiles of stages and replicas (the shapes that cut the fewest connections off a grid) are laid
// into the leaves, the best of them are improved by exchanges of two slots until none helps
// (Kernighan and Lin, Bell System Technical Journal 49(2), 1970, exchange pairs likewise), and
// disturbed at their busiest uplink and improved again while `limits` last. Never worse than rank
// order; the same for the same seed.
SearchedAssignment search_assignment(const PlacementProblem& network,
                                     const PlacementSearchLimits& limits);

}  // namespace regatta::plan
