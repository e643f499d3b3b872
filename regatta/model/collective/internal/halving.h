// collective/internal/halving.h: collectives in ceil(log2 p) steps for any number of ranks p: for
// vectors of middle length. In every step a rank sends to one rank and receives from one, half of
// the parts that it still works for; the distances are p halved and rounded up until 1 (6: 3, 2,
// 1). With S the bytes of the whole vector:
//   halving_reduce_scatter       ceil(log2 p) steps,   (p-1)/p S sent per rank
//   doubling_all_gather          ceil(log2 p) steps,   (p-1)/p S sent per rank
//   halving_doubling_all_reduce  2 ceil(log2 p) steps, 2(p-1)/p S sent per rank
// Those are the steps and bytes of halving and doubling between powers of two; here other numbers
// of ranks need no more bytes, as no rank is folded into another. The parts of a step are one
// message, or two where they pass the end of the vector. A part is reduced on one rank in an order
// that p alone gives: the same bits on every rank and in every run.
// Sources: Traeff, arXiv 2410.14234, 2024; Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
#pragma once

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

// schedule.reduction is set by the caller. in, out: count elements, the same place or apart.
void halving_doubling_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                                 const Buffers& buffers);
// in: count * world_size elements, out: count; `out` may lie anywhere on `in`.
void halving_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                            const Buffers& buffers);
// in: count elements, out: count * world_size; `in` may lie anywhere on `out`.
void doubling_all_gather(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers);

}  // namespace regatta::collective
