// collective/test_reduction_tree.h: for tests: the tree of reduce_many.h by its definition, and
// data whose sum shows every other order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "regatta/model/collective/reduce_kernels.h"

namespace regatta::collective {

using ReductionInput = std::vector<std::byte>;

// Numbers of all magnitudes and both signs, some that cancel those of other ranks but for a rest.
inline ReductionInput adversarial(DataType type, std::size_t count, int rank) {
  ReductionInput memory(count * size_of(type));
  std::mt19937 random(static_cast<unsigned>(rank) * 7919U + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    // Exponents 117 to 137 of bf16 and f32, 5 to 25 of f16.
    if (type == DataType::kF32) {
      reinterpret_cast<std::uint32_t*>(memory.data())[i] =
          (bits & 0x807fffffU) | (117 + (bits >> 8) % 21) << 23;
    } else {
      const bool is_bf16 = type == DataType::kBf16;
      const std::uint32_t exponent =
          is_bf16 ? (117 + (bits >> 16) % 21) << 7 : (5 + (bits >> 16) % 16) << 10;
      const std::uint32_t rest = bits & (is_bf16 ? 0x807fU : 0x83ffU);
      reinterpret_cast<std::uint16_t*>(memory.data())[i] =
          static_cast<std::uint16_t>(rest | exponent);
    }
  }
  return memory;
}

// The value of ranks [first, first + inputs) of the tree.
inline ReductionInput reduce_by_tree(const Reduction& reduction,
                                     const std::vector<ReductionInput>& inputs, std::size_t first,
                                     std::size_t count) {
  if (count == 1) return inputs[first];
  std::size_t left = 1;
  while (left * 2 < count)
    left *= 2;
  const ReductionInput a = reduce_by_tree(reduction, inputs, first, left);
  const ReductionInput b = reduce_by_tree(reduction, inputs, first + left, count - left);
  ReductionInput sum(a.size());
  combine(reduction, sum.data(), a.data(), b.data(), a.size());
  return sum;
}

inline ReductionInput reduce_by_tree(Reduction reduction,
                                     const std::vector<ReductionInput>& inputs) {
  reduction.divisor = static_cast<int>(inputs.size());
  ReductionInput sum = reduce_by_tree(reduction, inputs, 0, inputs.size());
  finish(reduction, sum.data(), sum.size());
  return sum;
}

}  // namespace regatta::collective
