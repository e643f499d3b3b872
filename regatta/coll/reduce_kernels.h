// coll/reduce_kernels.h: element-wise reductions of byte ranges.
// f16 and bf16 are widened to fp32 for each operation and rounded to nearest even after it.
// Integers wrap round, also on the way to their average, which truncates towards zero. The result
// of an element depends on its two operands alone, not on its place, so a range may be reduced in
// parts.
#pragma once

#include <cstddef>

#include "regatta/coll/communicator.h"

namespace regatta::coll {

struct Reduction {
  DataType type = DataType::kF32;
  ReduceOp op = ReduceOp::kSum;
  int divisor = 1;  // ranks that take part: the average divides by it
};

// dst = a (op) b, where kAverage adds; dst may be a or b itself, other overlaps are not allowed.
// `bytes` is a multiple of the element size; all three are aligned to it.
void combine(const Reduction& reduction, std::byte* dst, const std::byte* a, const std::byte* b,
             std::size_t bytes);

// Ends an average: divides `bytes` at `data` by the divisor. Nothing for the other operations.
void finish(const Reduction& reduction, std::byte* data, std::size_t bytes);

}  // namespace regatta::coll
