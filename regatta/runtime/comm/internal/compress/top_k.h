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

// The number of elements of a fraction of `count`; at least 1 unless `count` is 0.
std::size_t top_k_count(std::size_t count, double fraction);

// Selects the entries.size() elements of x = in + residual with the largest magnitude (the first of
// equal ones; NaN is the largest), in the order of their places. `residual` then holds the rest of
// x; it has in.size() elements, fewer than 2^32. Exact: a radix selection.
ErrorSquares select_top_k(std::span<const float> in, std::span<float> residual,
                          std::span<TopKEntry> entries);

// out += the entries times factor. Indices beyond `out` are ignored.
void add_entries(std::span<const TopKEntry> entries, std::span<float> out, float factor);

}  // namespace regatta::comm::compress
