// coll/range.h: a run of bytes in a buffer.
#pragma once

#include <cstddef>

namespace regatta::coll {

struct Range {
  std::size_t from = 0;  // from the start of the buffer
  std::size_t bytes = 0;

  std::size_t end() const { return from + bytes; }
};

inline bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                    std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace regatta::coll
