// collective/internal/rooted.h: collectives in which one rank, the root, sends or receives all.
// With p ranks and S the bytes of one rank's vector:
//   direct_gather    1 step, S sent per rank except the root
//   direct_scatter   1 step, (p-1) S sent by the root
//   direct_reduce    1 step, S sent per rank except the root: for small messages
//   chain_reduce     p-2 steps until the root has its first piece, then S; S sent per rank except
//                    the root: for large messages
// direct_reduce combines in the order of the ranks, chain_reduce from the far end of the chain: the
// same bits in every run.
#pragma once

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/internal/ring.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

// out: count * world_size elements, at the root; elsewhere it is not used.
void direct_gather(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                   int root);
// in: count * world_size elements, at the root; elsewhere it is not used.
void direct_scatter(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                    int root);
// out: count elements, at the root; elsewhere it is not used. schedule.reduction is the caller's.
void direct_reduce(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                   int root);
void chain_reduce(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                  int root, const RingOptions& options = {});

}  // namespace regatta::collective
