// collective/internal/double_tree.h: two binary trees at once, pipelined: few steps and full
// bandwidth, for vectors of middle length between many ranks. Every rank except one or two is a
// leaf of one of the trees; each tree carries half of the vector, in chunks. With p ranks, S the
// bytes of the vector and c those of a chunk, where d <= 1 + log2 p is the depth of the trees:
//   double_tree_all_reduce  2 d + S/(2c) steps, at most 2 S sent per rank
//   double_tree_broadcast   1 + d + S/(2c) steps, at most S sent per rank; S by the root
//   double_tree_reduce      1 + d + S/(2c) steps, S sent per rank but the root
// A chunk is reduced up one tree, so an element has the same bits on every rank and in every run.
// Source: Sanders, Speck and Traeff, Parallel Computing 35(12), 2009.
#pragma once

#include <cstddef>

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

struct TreeOptions {
  // Bytes of a message: long ones keep the links full, short ones fill the trees early.
  std::size_t chunk_bytes = std::size_t{256} << 10;
};

// schedule.reduction is set by the caller; in, out: count elements, the same place or apart.
void double_tree_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                            const Buffers& buffers, const TreeOptions& options = {});
// out: count elements; `in` is not used.
void double_tree_broadcast(CollectiveSchedule& schedule, const GroupPosition& self,
                           const Buffers& buffers, int root, const TreeOptions& options = {});
// out: count elements, at the root; elsewhere it is not used.
void double_tree_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                        const Buffers& buffers, int root, const TreeOptions& options = {});

}  // namespace regatta::collective
