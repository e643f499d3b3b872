#include "regatta/runtime/comm/internal/shm/shm_group_progress.h"

#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {

void ShmGroupProgress::block(std::uint64_t sequence, std::uint64_t call, std::uint64_t bytes,
                             const CounterTarget& target) {
  blocked_sequence_.store(sequence, std::memory_order_relaxed);
  blocked_call_.store(call, std::memory_order_relaxed);
  blocked_bytes_.store(bytes, std::memory_order_relaxed);
  target_counter_.store(target.counter, std::memory_order_relaxed);
  target_value_.store(target.value, std::memory_order_relaxed);
}

CounterTarget ShmGroupProgress::target() const {
  return {target_counter_.load(), target_value_.load()};
}

std::string ShmGroupProgress::describe_blocked() const {
  return name_call(blocked_call_.load(), blocked_bytes_.load());
}

std::vector<int> ShmGroupProgress::waited_for() const {
  return ranks_below(peers_, target());
}

StalledCall ShmGroupProgress::stalled_call() const {
  StalledCall stalled{.communicator = communicator_,
                      .sequence = blocked_sequence_.load(),
                      .is_shared = true,
                      .waited_for = waited_for()};
  const MemberReport own = announced_report(peers_, peers_.rank, stalled.sequence);
  if (!own.knows_call) return {};
  stalled.call = own.call;
  stalled.bytes = own.bytes;
  for (int peer = 0; peer < peers_.size(); ++peer)
    if (peer != peers_.rank)
      stalled.seen.push_back(announced_report(peers_, peer, stalled.sequence));
  return stalled;
}

MemberReport ShmGroupProgress::member_report(std::uint64_t sequence) const {
  const std::uint64_t begun = entered();
  if (begun < sequence)
    return {.state = is_idle() ? MemberState::kNotCalled : MemberState::kBehind};
  MemberReport own = announced_report(peers_, peers_.rank, sequence);
  if (begun > sequence || is_idle()) own.state = MemberState::kCompleted;
  return own;
}

}  // namespace regatta::comm
