// collective/internal/bruck.h: few steps for small messages: parts travel together and are
// passed on. With p ranks and S the bytes of the whole vector:
//   bruck_all_to_all  ceil(log2 p) steps. In step k every part whose distance has bit k goes 2^k
//   ranks
//                     on: about S/2 a step, so log2(p)/2 S sent per rank (pairwise: p-1 steps, S)
//   bruck_all_gather  ceil(log2 p) steps of one message each, (p-1)/p S sent per rank
// Both copy about what they send. Source: Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11),
// 1997.
#pragma once

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

// in, out: count * world_size elements; they may be the same, and have no other overlap.
void bruck_all_to_all(CollectiveSchedule& schedule, const GroupPosition& self,
                      const Buffers& buffers);
// in: count elements, out: count * world_size; `in` may lie anywhere on `out`.
void bruck_all_gather(CollectiveSchedule& schedule, const GroupPosition& self,
                      const Buffers& buffers);

}  // namespace regatta::collective
