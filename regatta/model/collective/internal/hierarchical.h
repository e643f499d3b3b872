// collective/internal/hierarchical.h: all_reduce between servers that each have the same number of
// ranks (cost/hierarchical_layout.h): inside the server, then between the ranks that hold the same
// slice, then inside again. With N servers of P ranks and S the bytes of the vector, for a server
// with the share w of the work (1/N where all links are equal), over the network:
//   ring     sends 2(N-1)/N S, in 2(N-1) steps
//   direct   sends (1 + (N-2) w) S, in 2 steps: every rank sends every owner its part and receives
//            the results, so a server on a slow link owns little, down to S sent at w = 0
// inside a server each rank sends 2(P-1)/P S. The vector is cut into chunks, so that the three
// parts of different chunks overlap. Elements are reduced in an order that depends
// on the layout alone: the same bits on every rank and in every run. Sources: Thakur, Rabenseifner
// and Gropp, IJHPCA 19(1), 2005; for the slow link notes of docs/history/2026-11-collectives.md.
#pragma once

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/schedule.h"
#include "regatta/model/cost/hierarchical_layout.h"

namespace regatta::collective {

// schedule.reduction is set by the caller; in, out: count elements.
void hierarchical_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                             const Buffers& buffers, const cost::HierarchicalLayout& grid);

}  // namespace regatta::collective
