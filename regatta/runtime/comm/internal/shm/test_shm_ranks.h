// comm/internal/shm/test_shm_ranks.h: for tests: the regions of a group whose ranks are all in this
// process and driven by one thread.
#pragma once

#include <string>
#include <vector>

#include "regatta/runtime/comm/internal/shm/shm_peers.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

class TestShmRanks {
 public:
  explicit TestShmRanks(int ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      segments_.push_back(SharedSegment::create().value());
    for (int rank = 0; rank < ranks; ++rank) {
      ShmPeers peers{.rank = rank};
      for (int peer = 0; peer < ranks; ++peer) {
        const SharedSegment& segment = at(segments_, peer);
        peers.regions.push_back(&segment.region(0));
        peers.buffers.push_back(segment.buffers());
        if (peer != rank) peers.others.push_back(&segment.header());
        peers.names.push_back("rank " + std::to_string(peer));
      }
      peers_.push_back(std::move(peers));
    }
  }

  const ShmPeers& peers(int rank) const { return at(peers_, rank); }
  const SharedSegment& segment(int rank) const { return at(segments_, rank); }
  SegmentRegion& region(int rank) const { return segment(rank).region(0); }

  // Shows that the rank has entered a call.
  void announce(int rank, std::uint64_t sequence, std::uint64_t call, std::uint64_t bytes) const {
    CallAnnouncement& post = region(rank).entries[sequence % kSlots].post;
    post.call = call;
    post.bytes = bytes;
    post.sequence = sequence;
  }

 private:
  std::vector<SharedSegment> segments_;
  std::vector<ShmPeers> peers_;
};

}  // namespace regatta::comm
