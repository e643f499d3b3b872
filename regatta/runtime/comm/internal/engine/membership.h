// comm/internal/engine/membership.h: the consensus on who is left (membership_consensus.h) between
// the thread that calls shrink() and the progress thread, which has the ways to the other ranks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/membership_consensus.h"

namespace regatta::comm {

class Membership {
 public:
  // `wake`: makes the progress thread look for statements; from any thread.
  Membership(int rank, int world_size, std::function<void()> wake);

  // ---- From the thread that calls shrink() ----
  // Ends the operations of this world, here and on the other ranks; returns when that is done.
  void stop();
  // Enters the next round and waits for its outcome. Who has not entered it `timeout` later is
  // held for lost. kUnavailable: this rank itself is.
  Result<MembershipConsensus::Outcome> agree(bool consents, std::string payload, Seconds timeout);
  // The newest outcome came to nothing: a rank in it was lost since, or objects.
  bool is_outdated() const;
  // This rank takes no part any more; the others go on without it.
  void leave() { mark_lost(rank_); }

  // Any thread: these ranks are held for lost, and told so in case that they live.
  void exclude(const std::vector<int>& ranks);
  // Any thread: the rank is held for lost from now on.
  void mark_lost(int rank);

  // ---- From the progress thread ----
  void receive(int from, std::string_view statement);
  bool is_lost(int rank) const;
  // What to tell all other ranks.
  std::vector<std::string> take_statements();
  // Whether stop() was called; it waits for note_stopped().
  bool take_stop() { return stop_wanted_.exchange(false); }
  void note_stopped();

 private:
  // After each change, with the mutex held.
  void note_change();

  const int rank_;
  const int world_size_;
  const std::function<void()> wake_;
  std::atomic<bool> stop_wanted_ = false;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<bool> has_statements_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  MembershipConsensus consensus_;  // with the mutex
};

}  // namespace regatta::comm
