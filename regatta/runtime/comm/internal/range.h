// comm/internal/range.h: buffers as bytes, and runs of bytes in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace regatta::comm {

struct Range {
  std::size_t from = 0;  // from the start of the buffer
  std::size_t bytes = 0;

  std::size_t end() const { return from + bytes; }
};

// How far these parts of a buffer reach.
inline std::size_t end_of(std::span<const Range> parts) {
  std::size_t end = 0;
  for (const Range& part : parts)
    end = std::max(end, part.end());
  return end;
}

inline const std::byte* bytes_of(const void* data) {
  return static_cast<const std::byte*>(data);
}
inline std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}

inline bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                    std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace regatta::comm
