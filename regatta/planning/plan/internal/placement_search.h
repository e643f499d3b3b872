// plan/internal/placement_search.h: which slot goes under which leaf: one by one, to check the rest
// with, and by construction and exchanges of two, for clusters of any size.
#pragma once

#include "regatta/planning/plan/internal/slot_network.h"

namespace regatta::plan {

// Slots in order onto the usable servers in order.
SlotLeaves rank_order_leaves(const SlotNetwork& network);

// All of them, less those that cannot be below the best so far: for a dozen servers.
SlotLeaves exhaustive_leaves(const SlotNetwork& network);

struct SearchLimits {
  unsigned seed = 1;
  long long evaluations = 1'500'000;  // of changes, in all
  double enough = 0;                  // seconds: no placement takes less
};
struct SearchedLeaves {
  SlotLeaves leaf_of;
  long long evaluations = 0;
};
// Tiles of stages and replicas (the shapes that cut the fewest connections off a grid) are laid
// into the leaves, the best of them are improved by exchanges of two slots until none helps
// (Kernighan and Lin, Bell System Technical Journal 49(2), 1970, exchange pairs likewise), and
// disturbed at their busiest uplink and improved again while `limits` last. Never worse than rank
// order; the same for the same seed.
SearchedLeaves search_leaves(const SlotNetwork& network, const SearchLimits& limits);

}  // namespace regatta::plan
