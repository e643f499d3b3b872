// collective/reduce_kernels.h: element-wise reductions of byte ranges.
// f16 and bf16 are widened to fp32 for each operation and rounded to nearest even after it.
// Integers wrap round, also in the sum of an average, which truncates towards zero. The result of
// an element depends on its two operands alone, not on its place, so a range may be reduced in
// parts.
#pragma once

#include <cstddef>
#include <span>

#include "regatta/model/collective/data_type.h"

namespace regatta::collective {

// dst = a (op) b, where kAverage adds; dst may be a or b itself, other overlaps are not allowed.
// `bytes` is a multiple of the element size; all three are aligned to it.
void combine(const Reduction& reduction, std::byte* dst, const std::byte* a, const std::byte* b,
             std::size_t bytes);

// dst = (s0 (op) s1) (op) (s2 (op) s3), each rounded, in one pass; dst may be any of the four.
void combine_four(const Reduction& reduction, std::byte* dst, const std::byte* const* sources,
                  std::size_t bytes);

// Ends an average: divides `bytes` at `data` by the divisor. Nothing for the other operations.
void finish(const Reduction& reduction, std::byte* data, std::size_t bytes);

// Whether sums_in_f64 affects the reduction: sums and averages of f32, f16, bf16.
bool can_sum_in_f64(const Reduction& reduction);
// sum += in, element by element; of such a type. `bytes` of `in`.
void add_in_f64(DataType type, double* sum, const std::byte* in, std::size_t bytes);
// out = sum, for an average divided, as f32 and then in its type. `bytes` of `out`.
void round_f64(const Reduction& reduction, std::byte* out, const double* sum, std::size_t bytes);

// the reduction of the ranks' values of an element, in an order that
// only their number decides:
//   plain            from the left: ((x0 + x1) + x2) + x3
//   is_ordered       a tree, cut at the largest power of two below n: (x0 + x1) + (x2 + x3). Ranks
//                    that are a whole subtree may be reduced first, with the same bits.
//   sums_in_f64      sums from the left in f64, rounded at the end

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

}  // namespace regatta::collective
