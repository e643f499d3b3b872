// collective/internal/direct.h: collectives for small messages, where the number of steps
// decides. With p ranks and S the bytes of the whole vector:
//   exchange_all_reduce   1 step, every rank sends S to every other: (p-1) S sent per rank
//   doubling_all_reduce   log2 p steps of S (two more when p is no power of 2)
//   direct_all_gather     1 step, (p-1)/p S sent per rank
//   direct_reduce_scatter 1 step, (p-1)/p S sent per rank
//   tree_broadcast        binomial tree, ceil(log2 p) steps of S
//   dissemination_barrier ceil(log2 p) steps of empty messages
// Operands are combined in rank order, so every rank gets the same bits.
// Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005; Hensgen, Finkel and Manber, 1988.
#pragma once

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/internal/rank_parts.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

void exchange_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers);
void doubling_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers);
// in: count elements, out: count * world_size.
void direct_all_gather(CollectiveSchedule& schedule, const GroupPosition& self,
                       const Buffers& buffers);
// in: count * world_size elements, out: count.
void direct_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                           const Buffers& buffers);
// The parts of `in` are of any length; buffers.count is that of this rank's.
void direct_reduce_scatter_v(CollectiveSchedule& schedule, const GroupPosition& self,
                             const Buffers& buffers, const RankParts& segments);
// out: count elements; `in` is not used.
void tree_broadcast(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                    int root);
void dissemination_barrier(CollectiveSchedule& schedule, const GroupPosition& self);

}  // namespace regatta::collective
