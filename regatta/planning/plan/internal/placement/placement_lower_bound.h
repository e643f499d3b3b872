// plan/internal/placement/placement_lower_bound.h: what no placement of the slots goes below.
//
// A leaf that holds n slots cuts lines: rings, chains and exchanges of k slots. Its uplink carries
// at least one connection of every ring that it holds a part of; when it touches m rings, n slots
// fill so few that at least (m k - n) / (k - 1) are not whole. It carries two connections of a
// chain for every run of slots, less one for each end of the chain in it, and a chain has only two
// ends for all leaves. An exchange is cheapest where all but one of the lines touched hold one slot
// or all.
//
// The slots are a grid of stages x columns, and columns of outer x inner where a shorter line runs
// along neighbours. A set of n slots is projected on the sides of the grid: the lines it
// touches. In three dimensions n^2 is at most the product of the three projections, in two
// dimensions n that of two (Loomis and Whitney, Bulletin of the AMS 55, 1949). That gives a least
// time for every n and number of ends; the leaves must have room for all slots with the ends there
// are, and the least time at which they do is the bound. The same holds for groups.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/placement/placement_problem.h"

namespace regatta::plan {

Seconds placement_lower_bound(const PlacementProblem& network);

}  // namespace regatta::plan
