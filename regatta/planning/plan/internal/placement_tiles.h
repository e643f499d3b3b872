// plan/internal/placement_tiles.h: where a search of placements starts: the grid of stages and
// replicas in tiles, laid into the leaves in several orders.
#pragma once

#include <vector>

#include "regatta/planning/plan/internal/slot_network.h"

namespace regatta::plan {

std::vector<SlotLeaves> tiled_leaves(const SlotNetwork& network);

}  // namespace regatta::plan
