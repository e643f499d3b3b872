// comm/internal/reduce_many.h: the reduction of the ranks' values of an element, in an order that
// only their number decides:
//   plain            from the left: ((x0 + x1) + x2) + x3
//   is_ordered       a tree, cut at the largest power of two below n: (x0 + x1) + (x2 + x3). Ranks
//                    that are a whole subtree may be reduced first, with the same bits.
//   sums_in_f64      sums from the left in f64, rounded at the end
#pragma once

#include <cstddef>
#include <span>

#include "regatta/runtime/comm/internal/reduce_kernels.h"

namespace regatta::comm {

// A block of the result stays in the nearest cache between its operations.
inline constexpr std::size_t kReduceBlockBytes = 4096;

// The number of ranks, of n > 1, that the left side of the tree has.
constexpr int left_side(int ranks) {
  int power = 1;
  while (power * 2 < ranks)
    power *= 2;
  return power;
}

// dst = the reduction of `bytes` (at most kReduceBlockBytes) at `at` of all sources, averages
// divided. dst may be the first of them, other overlaps are not allowed.
void reduce_block(const Reduction& reduction, std::byte* dst,
                  std::span<const std::byte* const> sources, std::size_t at, std::size_t bytes);

}  // namespace regatta::comm
