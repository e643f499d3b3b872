// collective/internal/ordered.h: reductions whose bits depend on the inputs and their ranks
// alone (CommunicatorOptions::deterministic): every element is reduced by one tree
// (reduce_kernels.h). With p ranks and S the bytes of the whole vector, a rank sends:
//   ordered_all_reduce      up to 16 KiB / (p-1) (p = 2: 256 KiB): 1 step, S to every rank; else
//                           2 steps, 2(p-1)/p S: every rank sends every owner its part and
//                           receives the result
//   ordered_reduce_scatter  1 step, (p-1)/p S
//   ordered_reduce          2 steps, (p-1)/p S and S/p to the root
// Where every server holds a whole subtree (ranks k P to k P + P - 1, P a power of two), all_reduce
// goes inside the servers first, which are N: 2(N-1)/N S over the network for each server. Memory
// for some chunks of the vector, not for all of it.
#pragma once

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/internal/rank_parts.h"
#include "regatta/model/collective/schedule.h"
#include "regatta/model/cost/hierarchical_layout.h"

namespace regatta::collective {

// schedule.reduction is set by the caller; in, out: count elements. `grid`: where the ranks are, or
// null.
void ordered_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                        const Buffers& buffers, const cost::HierarchicalLayout* grid);
// in: count * world_size elements, out: count.
void ordered_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                            const Buffers& buffers);
// The parts of `in` are of any length; out: this rank's.
void ordered_reduce_scatter_v(CollectiveSchedule& schedule, const GroupPosition& self,
                              const Buffers& buffers, const RankParts& parts);
// in: count elements, out: count at the root.
void ordered_reduce(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                    int root);

}  // namespace regatta::collective
