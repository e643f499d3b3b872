// coll/algorithm/all_to_all.h: every rank has a part for every other one. With p ranks and S the
// bytes of one rank's whole vector:
//   pairwise_all_to_all   p-1 steps of S/p, (p-1)/p S sent per rank; in step d with the ranks d
//                         before and behind, so that nobody is sent to by two at once
// Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
#pragma once

#include "regatta/coll/algorithm/place.h"
#include "regatta/coll/schedule.h"

namespace regatta::coll {

// in, out: count * world_size elements; they may be the same, and have no other overlap.
void pairwise_all_to_all(Schedule& schedule, const Place& place, const Buffers& buffers);

}  // namespace regatta::coll
