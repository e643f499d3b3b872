// collective/internal/varying.h: collectives whose parts vary (VaryingParts), over the network.
// With p ranks and S the bytes of the whole vector, g those for other ranks:
//   all_to_all_v        p-1 steps, g sent (all_to_all.h); the lengths of all pairs are compared
//   all_gather_v        1 step where S is small, (p-1) times the rank's part sent; else the ring,
//                       p-1 steps, S less the part of the next rank sent
//   reduce_scatter_v    the same: 1 step, g sent, or the ring, S less the rank's part sent; in the
//                       deterministic mode ordered.h
// In the ring a rank compares lengths with its neighbours only.
#pragma once

#include "regatta/model/collective/call.h"
#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

// Writes the schedule of one rank, schedule.reduction included.
void build_varying(CollectiveSchedule& schedule, const GroupPosition& self, const Call& call);

}  // namespace regatta::collective
