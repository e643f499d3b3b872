// comm/internal/shm/shm_peers.h: the ranks of one group and their memory, as one rank sees them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/data_type.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

// More ranks of a server than this exchange messages instead.
inline constexpr int kPeersMax = 256;

// The part of rank `part` in `bytes`: whole cache lines, so that no line has two writers.
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
  std::vector<std::byte*> buffers;           // by rank: its buffers, as mapped in this process
  std::vector<SharedSegmentHeader*> others;  // of all other ranks
  std::vector<std::string> names;            // by rank of the group, for messages

  int size() const { return static_cast<int>(regions.size()); }
  SegmentRegion& own() const { return *at(regions, rank); }
  SegmentRegion& of(int peer) const { return *at(regions, peer); }
};

}  // namespace regatta::comm
