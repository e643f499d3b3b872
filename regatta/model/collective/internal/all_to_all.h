// collective/internal/all_to_all.h: every rank has a part for every other one. With p ranks and S
// the bytes of one rank's whole vector:
//   pairwise_all_to_all   p-1 steps of S/p, (p-1)/p S sent per rank; in step d with the ranks d
//                         before and behind, so that no rank receives from two at once
//   pairwise_all_to_all_v the same with parts of any length; empty ones are sent too, so that a
//                         receiver that expects another length notices
// Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
#pragma once

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/internal/rank_parts.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

// in, out: count * world_size elements; they may be the same, and have no other overlap.
void pairwise_all_to_all(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers);

// give: what of `in` goes to each rank; take: where in `out` what comes from each lies. The buffers
// do not overlap; buffers.count is not used.
void pairwise_all_to_all_v(CollectiveSchedule& schedule, const GroupPosition& self,
                           const Buffers& buffers, const RankParts& give, const RankParts& take);

}  // namespace regatta::collective
