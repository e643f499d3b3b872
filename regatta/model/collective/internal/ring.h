// collective/internal/ring.h: ring collectives in rank order, for large messages.
// Rank r sends to r+1 and receives from r-1 only. With p ranks and S the bytes of the whole vector:
//   reduce_scatter  p-1 steps of S/p        sent per rank (p-1)/p S
//   all_gather      p-1 steps of S/p        sent per rank (p-1)/p S
//   all_reduce      both, 2(p-1) steps      sent per rank 2(p-1)/p S
//   broadcast       a chain from the root: p-2 steps until the last rank has its first piece, then
//                   S; sent per rank S (0 by the last)
// A step is cut into pieces so that a rank forwards one while the next one arrives. Elements are
// reduced in ring order: the same bits on every rank and in every run.
// Source: Patarasuk and Yuan, JPDC 69(2), 2009.
#pragma once

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/internal/rank_parts.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

struct RingOptions {
  // Bytes of the pieces of a step, 4 KiB or more; 0: by its length (split_into_pieces).
  std::size_t piece_bytes = 0;
};

// schedule.reduction is set by the caller; in, out: count elements.
void ring_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                     const Buffers& buffers, const RingOptions& options = {});
// in: count * world_size elements, out: count.
void ring_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers, const RingOptions& options = {});
// in: count elements, out: count * world_size.
void ring_all_gather(CollectiveSchedule& schedule, const GroupPosition& self,
                     const Buffers& buffers, const RingOptions& options = {});
// The same with parts of any length: those of the whole vector, `in` of the first and `out` of the
// second; buffers.count is that of this rank's part.
void ring_reduce_scatter_v(CollectiveSchedule& schedule, const GroupPosition& self,
                           const Buffers& buffers, const RankParts& segments,
                           const RingOptions& options = {});
void ring_all_gather_v(CollectiveSchedule& schedule, const GroupPosition& self,
                       const Buffers& buffers, const RankParts& segments,
                       const RingOptions& options = {});
// out: count elements; `in` is not used.
void chain_broadcast(CollectiveSchedule& schedule, const GroupPosition& self,
                     const Buffers& buffers, int root, const RingOptions& options = {});

// How a range of bytes is cut: pieces of equal length but the last, at most kPiecesMax unless they
// would pass kPieceBytesMax, or of the bytes in `options`. The same on sender and receiver, which
// both know only the length.
struct PieceSplit {
  std::size_t piece_bytes = 0;
  std::uint32_t pieces = 0;
};
PieceSplit split_into_pieces(std::size_t bytes, const RingOptions& options = {});

}  // namespace regatta::collective
