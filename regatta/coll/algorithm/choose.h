// coll/algorithm/choose.h: which algorithms can carry out a call, and the schedule of one of them.
// Functions of their arguments alone, so all ranks get the same.
#pragma once

#include <cstddef>
#include <vector>

#include "regatta/coll/algorithm/place.h"
#include "regatta/coll/call.h"
#include "regatta/coll/schedule.h"
#include "regatta/coll/tuning/setting.h"
#include "regatta/cost/grid.h"

namespace regatta::coll {

// The algorithms for a call with `bytes` in the whole vector; `has_grid`: a hierarchical form is
// known. Those that would take memory or bytes out of all proportion are left out.
std::vector<Algorithm> algorithms_for(CallKind kind, std::size_t bytes, int ranks, bool has_grid);

// What is taken where nothing was measured or asked for.
Algorithm usual_algorithm(CallKind kind, std::size_t bytes, int ranks, bool has_grid);

// The chunks that an algorithm cuts a call into by itself; 0 where it has none to choose.
std::size_t chunk_bytes_of(Algorithm algorithm, CallKind kind, std::size_t bytes, int ranks);

// Where the ranks of the group are, and how the call is to be carried out.
struct Plan {
  Place place;
  const cost::Grid* grid = nullptr;  // null: no hierarchical form is worth it
  Setting setting;                   // kAutomatic: usual_algorithm()
};

// Writes the schedule of one rank, schedule.reduction included; one rank alone copies, nothing to
// do gives no steps.
void build_schedule(Schedule& schedule, const Plan& plan, const Call& call);

}  // namespace regatta::coll
