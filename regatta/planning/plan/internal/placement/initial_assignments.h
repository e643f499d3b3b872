// plan/internal/placement/initial_assignments.h: where a search of placements starts: the grid of
// stages and replicas in tiles, laid into the leaves in several orders.
#pragma once

#include <vector>

#include "regatta/planning/plan/internal/placement/placement_problem.h"

namespace regatta::plan {

std::vector<LeafAssignment> initial_assignments(const PlacementProblem& network);

}  // namespace regatta::plan
