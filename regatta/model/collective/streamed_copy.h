// collective/streamed_copy.h: moves that go past the caches: for results larger than the caches,
// which would otherwise be read from memory before they are written (x86: non-temporal stores).
#pragma once

#include <cstddef>
#include <span>

#include "regatta/model/collective/reduce_kernels.h"

namespace regatta::collective {

// A copy to several places goes in blocks of this size, which stay in the core's cache meanwhile.
inline constexpr std::size_t kBlockBytes = std::size_t{16} << 10;

enum class StoreMode { kCached, kNonTemporal };

// Copies `bytes`; the ranges do not overlap.
void move_bytes(std::byte* to, const std::byte* from, std::size_t bytes, StoreMode store);

// Reduces `sources` element by element (reduce_many.h), finishes averages, and writes the result to
// every one of `cached` and `streamed` (past the caches). A target may be one of the sources, other
// overlaps are not allowed. `bytes` is a multiple of the element size.
struct CombineTargets {
  std::span<std::byte* const> cached;
  std::span<std::byte* const> streamed;
};
void combine_many(const Reduction& reduction, const CombineTargets& targets,
                  std::span<const std::byte* const> sources, std::size_t bytes);

}  // namespace regatta::collective
