// comm/internal/shm/peer_counters.h: the counters in the regions of a group by which its ranks wait
// for each other, and the operations that the regions announce. Any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/runtime/comm/internal/shm/shm_peers.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

enum class PeerCounter : std::uint8_t {
  kPosts,     // operations that a rank has announced
  kFilled,    // rounds that a rank has staged
  kCombined,  // rounds that a rank has combined
};

// An operation continues when this counter of every rank is at least `value`.
struct CounterTarget {
  PeerCounter counter = PeerCounter::kPosts;
  std::uint64_t value = 0;
};

// The entry of a region that announces the operation.
constexpr unsigned slot_of(std::uint64_t sequence) {
  return static_cast<unsigned>(sequence % kSlots);
}

bool have_reached(const ShmPeers& peers, const CounterTarget& target);
// Ranks of the group.
std::vector<int> ranks_below(const ShmPeers& peers, const CounterTarget& target);

// The state of an operation as the region of `peer` shows it; `rank` of the report is that of the
// group.
MemberReport announced_report(const ShmPeers& peers, int peer, std::uint64_t sequence);

}  // namespace regatta::comm
