// comm/internal/shm/shm_group_progress.h: how far the operations of a group are at this rank, for
// the threads that watch them. The thread that drives the group writes; every thread may read.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "regatta/runtime/comm/internal/engine/stalled_call.h"
#include "regatta/runtime/comm/internal/shm/peer_counters.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"

namespace regatta::comm {

class ShmGroupProgress {
 public:
  // `peers` outlives this; `communicator`: its id.
  ShmGroupProgress(const ShmPeers& peers, std::uint64_t communicator)
      : peers_(peers), communicator_(communicator) {}

  // The calling thread of the communicator alone.
  void count_submitted() { count(submitted_); }
  // The driving thread alone.
  void count_step() { count(steps_); }
  void count_ended() { count(ended_); }
  void block(std::uint64_t sequence, std::uint64_t call, std::uint64_t bytes,
             const CounterTarget& target);

  std::uint64_t communicator() const { return communicator_; }
  // No operation is under way.
  bool is_idle() const {
    const std::uint64_t ended = ended_.load(std::memory_order_acquire);
    return submitted_.load(std::memory_order_relaxed) == ended;
  }
  // Grows with every step of an operation: while is_idle() is false and this does not change, the
  // oldest operation is stuck.
  std::uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }

  // The oldest operation: "all_reduce of 4 MiB", and the ranks of the group that it waits for.
  std::string describe_blocked() const;
  std::vector<int> waited_for() const;
  // Both, with what the other ranks show of it; ranks are those of the group, `since` is left out.
  // Sequence 0: the operation has only begun.
  StalledCall stalled_call() const;

  // The last operation that this rank has announced.
  std::uint64_t entered() const { return last_entered(peers_.own()); }
  // This rank's state with respect to an operation.
  MemberReport member_report(std::uint64_t sequence) const;

 private:
  // One thread at a time changes a counter: cheaper than fetch_add.
  static void count(std::atomic<std::uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  CounterTarget target() const;

  const ShmPeers& peers_;
  const std::uint64_t communicator_;
  std::atomic<std::uint64_t> submitted_ = 0;  // operations
  std::atomic<std::uint64_t> ended_ = 0;      // operations
  std::atomic<std::uint64_t> steps_ = 0;
  // The operation that the driving thread is blocked in, and the target that it waits for.
  std::atomic<std::uint64_t> blocked_sequence_ = 0;
  std::atomic<std::uint64_t> blocked_call_ = 0;
  std::atomic<std::uint64_t> blocked_bytes_ = 0;
  std::atomic<PeerCounter> target_counter_ = PeerCounter::kPosts;
  std::atomic<std::uint64_t> target_value_ = 0;
};

}  // namespace regatta::comm
