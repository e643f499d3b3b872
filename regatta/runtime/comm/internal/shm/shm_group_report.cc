// What a group tells of itself and of the others: who an operation waits for, and where each is.
#include <cstdint>
#include <string>
#include <vector>

#include "regatta/runtime/comm/internal/shm/shm_group.h"

namespace regatta::comm {

std::string ShmGroup::describe_blocked() const {
  return name_call(blocked_.call.load(), blocked_.bytes.load());
}

std::vector<int> ShmGroup::waited_for() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < setup_.peers.size(); ++peer)
    if (counter_of(peer, blocked_.wait.load(), blocked_.target.load()) < blocked_.target.load())
      ranks.push_back(peer);
  return ranks;
}

StalledCall ShmGroup::stalled_call() const {
  StalledCall stalled{.communicator = setup_.id,
                      .sequence = blocked_.sequence.load(),
                      .is_shared = true,
                      .waited_for = waited_for()};
  const MemberReport own = report(setup_.peers.rank, stalled.sequence);
  if (!own.knows_call) return {};
  stalled.call = own.call;
  stalled.bytes = own.bytes;
  for (int peer = 0; peer < setup_.peers.size(); ++peer)
    if (peer != setup_.peers.rank) stalled.seen.push_back(report(peer, stalled.sequence));
  return stalled;
}

std::uint64_t ShmGroup::entered() const {
  return last_entered(setup_.peers.own());
}

MemberReport ShmGroup::report(int peer, std::uint64_t sequence) const {
  const CallAnnouncement& post = setup_.peers.of(peer).entries[slot_of(sequence)].post;
  const std::uint64_t theirs = post.sequence.load(std::memory_order_acquire);
  MemberReport report{.rank = peer, .state = MemberState::kNotCalled};
  if (theirs < sequence) return report;
  report.state = theirs == sequence ? MemberState::kEntered : MemberState::kCompleted;
  report.call = post.call.load(std::memory_order_acquire);
  report.bytes = post.bytes.load(std::memory_order_acquire);
  report.knows_call = post.sequence.load(std::memory_order_acquire) == sequence;
  return report;
}

MemberReport ShmGroup::member_report(std::uint64_t sequence) const {
  const std::uint64_t begun = entered();
  if (begun < sequence)
    return {.state = is_idle() ? MemberState::kNotCalled : MemberState::kBehind};
  MemberReport own = report(setup_.peers.rank, sequence);
  if (begun > sequence || is_idle()) own.state = MemberState::kCompleted;
  return own;
}

}  // namespace regatta::comm
