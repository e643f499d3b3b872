// collective/internal/group_position.h: the arguments common to all algorithms: the position of the
// rank in its group, and the buffers of the call.
#pragma once

#include <cstddef>

namespace regatta::collective {

// The index `distance` (may be negative) after `index` on a circle of `count`.
inline int wrap_around(int index, int distance, int count) {
  return ((index + distance) % count + count) % count;
}

struct GroupPosition {
  int rank = 0;
  int world_size = 1;

  // The rank `distance` (may be negative) after this one on the circle of ranks.
  int neighbour(int distance) const { return wrap_around(rank, distance, world_size); }
};

struct Buffers {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t count = 0;  // elements, as in the call
  std::size_t element_bytes = 1;

  std::size_t bytes() const { return count * element_bytes; }
};

}  // namespace regatta::collective
