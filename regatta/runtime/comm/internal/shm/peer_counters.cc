#include "regatta/runtime/comm/internal/shm/peer_counters.h"

#include <atomic>

namespace regatta::comm {
namespace {

std::uint64_t counter_of(const SegmentRegion& region, const CounterTarget& target) {
  switch (target.counter) {
    case PeerCounter::kPosts:
      return region.entries[slot_of(target.value)].post.sequence.load(std::memory_order_acquire);
    case PeerCounter::kFilled:
      return region.filled.rounds.load(std::memory_order_acquire);
    case PeerCounter::kCombined:
      return region.combined.rounds.load(std::memory_order_acquire);
  }
  return 0;
}

}  // namespace

bool have_reached(const ShmPeers& peers, const CounterTarget& target) {
  for (const SegmentRegion* region : peers.regions)
    if (counter_of(*region, target) < target.value) return false;
  return true;
}

std::vector<int> ranks_below(const ShmPeers& peers, const CounterTarget& target) {
  std::vector<int> ranks;
  for (int peer = 0; peer < peers.size(); ++peer)
    if (counter_of(peers.of(peer), target) < target.value) ranks.push_back(peer);
  return ranks;
}

MemberReport announced_report(const ShmPeers& peers, int peer, std::uint64_t sequence) {
  const CallAnnouncement& post = peers.of(peer).entries[slot_of(sequence)].post;
  const std::uint64_t announced = post.sequence.load(std::memory_order_acquire);
  MemberReport report{.rank = peer, .state = MemberState::kNotCalled};
  if (announced < sequence) return report;
  report.state = announced == sequence ? MemberState::kEntered : MemberState::kCompleted;
  report.call = post.call.load(std::memory_order_acquire);
  report.bytes = post.bytes.load(std::memory_order_acquire);
  report.knows_call = post.sequence.load(std::memory_order_acquire) == sequence;
  return report;
}

}  // namespace regatta::comm
