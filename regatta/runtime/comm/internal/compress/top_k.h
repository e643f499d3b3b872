// comm/internal/compress/top_k.h: the elements of the largest magnitude, with their places. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/runtime/comm/internal/compress/codec.h"

namespace regatta::comm::compress {

struct TopKEntry {
  std::uint32_t index = 0;
  float value = 0;
};

// How many elements a fraction of `count` are: at least 1 of a vector that is not empty.
std::size_t top_k_count(std::size_t count, double fraction);

// Of x = in + residual, the entries.size() elements of the largest magnitude (of equal ones the
// first; NaN is the largest), in the order of their places. They leave `residual`, which keeps the
// rest of x; `residual` has in.size() elements, fewer than 2^32. Exact: a radix selection.
ErrorSquares select_top_k(std::span<const float> in, std::span<float> residual,
                          std::span<TopKEntry> entries);

// out += the entries, times factor. Indices that are not in `out` are left out.
void add_entries(std::span<const TopKEntry> entries, std::span<float> out, float factor);

}  // namespace regatta::comm::compress
