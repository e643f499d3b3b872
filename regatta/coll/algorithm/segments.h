// coll/algorithm/segments.h: a vector divided between the ranks.
#pragma once

#include <algorithm>
#include <cstddef>

namespace regatta::coll {

// The p parts of a vector: [begin(k), begin(k + 1)) in bytes.
struct Segments {
  std::size_t count;  // elements
  std::size_t element_bytes;
  int parts;

  std::size_t begin(int k) const {
    const auto n = static_cast<std::size_t>(parts);
    const auto part = static_cast<std::size_t>(k);
    return (count / n * part + std::min(count % n, part)) * element_bytes;
  }
  std::size_t bytes(int k) const { return begin(k + 1) - begin(k); }
};

inline bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                    std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace regatta::coll
