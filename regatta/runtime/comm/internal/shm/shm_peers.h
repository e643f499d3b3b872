// comm/internal/shm/shm_peers.h: the regions of the ranks of one group, as one rank sees them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "regatta/model/collective/data_type.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

// More ranks of a server than this exchange messages instead.
inline constexpr int kPeersMax = 256;

// The part of rank `part` in `bytes`: whole lines, so that no line has two writers.
inline ByteRange part_of(std::size_t bytes, int parts, int part) {
  const auto count = static_cast<std::size_t>(parts);
  const std::size_t lines = (bytes + kCacheLine - 1) / kCacheLine;
  const std::size_t share = (lines + count - 1) / count * kCacheLine;
  const std::size_t from = std::min(bytes, share * static_cast<std::size_t>(part));
  return {from, std::min(share, bytes - from)};
}

struct ShmPeers {
  int rank = 0;
  std::vector<SegmentRegion*> regions;       // by rank of the group
  std::vector<std::byte*> buffers;           // by rank: where its buffers lie in this process
  std::vector<SharedSegmentHeader*> others;  // all but the own one

  int size() const { return static_cast<int>(regions.size()); }
  SegmentRegion& own() const { return *regions[static_cast<std::size_t>(rank)]; }
  SegmentRegion& of(int peer) const { return *regions[static_cast<std::size_t>(peer)]; }
};

}  // namespace regatta::comm
