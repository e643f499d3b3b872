// sharing/internal/swap/call_gate.h: counts the driver calls that use swappable memory, and holds
// them back while it is closed. Any thread may call.
#pragma once

#include <atomic>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/units.h"

namespace regatta::sharing {

class CallGate {
 public:
  // Counts a call. False when the gate is closed: the call, still counted, must wait. Counts first
  // and then checks; the thread that closes does it the other way round.
  bool enter() {
    users_.fetch_add(1);
    return is_open_.load();
  }
  void leave() { users_.fetch_sub(1); }

  // For a counted call that must wait: begin_wait() gives its count up, end_wait() waits for at
  // most `limit` and counts it again. True when the gate is open.
  void begin_wait() {
    users_.fetch_sub(1);
    ++waiting_;
  }
  bool end_wait(Seconds limit) {
    {
      MutexLock lock(mutex_);
      opened_.wait_for(lock, limit, [this] { return is_open_.load(); });
    }
    users_.fetch_add(1);
    --waiting_;
    return is_open_;
  }

  void close() { is_open_ = false; }
  void open() {
    const MutexLock lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  bool is_open() const { return is_open_; }
  bool has_users() const { return users_ != 0; }
  bool has_waiting() const { return waiting_ != 0; }

 private:
  alignas(64) std::atomic<int> users_{0};
  std::atomic<bool> is_open_{true};
  std::atomic<int> waiting_{0};
  Mutex mutex_;  // of opened_; the state is atomic
  ConditionVariable opened_;
};

}  // namespace regatta::sharing
