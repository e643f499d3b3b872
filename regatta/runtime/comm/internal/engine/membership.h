// comm/internal/engine/membership.h: carries the agreement on the ranks that are left
// (membership_consensus.h) between the thread that calls shrink() and the progress thread, which
// has the links to the other ranks.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/membership_consensus.h"

namespace regatta::comm {

class Membership {
 public:
  // `wake`: makes the progress thread send the statements; called from any thread.
  Membership(int rank, int world_size, std::function<void()> wake);

  // ---- From the thread that calls shrink() ----
  // Ends the operations of this world, here and on the other ranks; returns when that is done.
  void stop();
  // Enters the next round and waits for its outcome. A rank that has not entered it after `timeout`
  // counts as lost. kUnavailable: this rank itself does.
  Result<MembershipConsensus::Outcome> agree(bool consents, std::string payload, Seconds timeout);
  // The newest outcome is void: a rank in it was lost since, or objects.
  bool is_outdated() const;
  // This rank takes no part any more; the others go on without it.
  void leave() { mark_lost(rank_); }

  // Any thread: these ranks count as lost, and are told in case they live.
  void exclude(const std::vector<int>& ranks);
  // Any thread: the rank counts as lost from now on.
  void mark_lost(int rank);
  bool is_lost(int rank) const;

  // ---- From the progress thread ----
  void receive(int from, std::string_view statement);
  // The statements that all other ranks must get.
  std::vector<std::string> consume_statements();
  // Whether stop() was called; it waits for confirm_stop().
  bool consume_stop_request() { return is_stop_requested_.exchange(false); }
  void confirm_stop();

 private:
  // After each change.
  void notify_change() REGATTA_REQUIRES(mutex_);

  const int rank_;
  const int world_size_;
  const std::function<void()> wake_;
  std::atomic<bool> is_stop_requested_ = false;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<bool> has_statements_ = false;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  MembershipConsensus consensus_ REGATTA_GUARDED_BY(mutex_);
};

}  // namespace regatta::comm
