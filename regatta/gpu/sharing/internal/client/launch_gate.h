// sharing/internal/client/launch_gate.h: holds back the launches of one process on one device until
// it is the tenant's turn (internal/daemon/turn_scheduler.h). Between pass() and launched() the
// caller gives the work to the driver. Any thread may call.
//
// The gate's worker thread, started by the first launch, observes the work in flight by events in
// the streams (stream_events.h), notifies the daemon when the last work of a turn has ended and
// when the process has become idle, and learns how long kernels take. Launches into captures are
// not counted; the gate touches no stream that is being captured.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/client/daemon_notifier.h"
#include "regatta/gpu/sharing/internal/client/kernel_durations.h"
#include "regatta/gpu/sharing/internal/client/launch_gaps.h"
#include "regatta/gpu/sharing/internal/client/stream_events.h"
#include "regatta/gpu/sharing/internal/client/stream_lanes.h"
#include "regatta/gpu/sharing/internal/client/timed_spans.h"
#include "regatta/gpu/sharing/internal/client/work_in_flight.h"
#include "regatta/gpu/sharing/internal/client/work_page.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"

namespace regatta::sharing {

class LaunchGate {
 public:
  // `client` and `events` outlive the gate.
  LaunchGate(Client& client, int device, StreamEvents& events);
  LaunchGate(const LaunchGate&) = delete;
  LaunchGate& operator=(const LaunchGate&) = delete;
  ~LaunchGate();

  struct Pass {
    KernelDurations::Entry* entry = nullptr;  // null: not counted
    std::uint64_t cost_ns = 0;
    StreamEvents::Event begin = nullptr;
    bool may_have_waited = false;  // for the last turn's work: none of this turn has ended yet
  };

  // Before a launch; `key` by KernelDurations::key_of(). Returns at once during the tenant's turn
  // while not too much is in flight.
  Pass pass(std::uint64_t key, void* stream) {
    if (events_.is_captured(stream)) return {};
    KernelDurations::Entry& entry = durations_.find(key);
    const std::uint64_t cost = entry.cost_ns.load(std::memory_order_relaxed);
    // Counts first and then checks; the thread that closes the gate does it the other way round.
    const std::uint64_t before = work_.launch(cost);
    const std::uint64_t lane_limit = lane_limit_.load(std::memory_order_relaxed);
    if (before >= limit_.load() || turn_word() != open_word_.load(std::memory_order_relaxed) ||
        (lane_limit != StreamLanes::kUnlimited && lanes_.of(stream).in_flight_ns() >= lane_limit))
      wait_for_turn(stream, cost);
    const bool is_timed = KernelDurations::is_to_be_timed(entry);
    return {&entry, cost, is_timed ? events_.record(stream) : nullptr, !work_.has_completed_any()};
  }

  // After the launch, also when it failed.
  void launched(const Pass& pass, void* stream) {
    if (pass.entry == nullptr) return;
    StreamLane& lane = lanes_.of(stream);
    const std::uint64_t unrecorded =
        lane.unrecorded_ns.fetch_add(pass.cost_ns, std::memory_order_relaxed) + pass.cost_ns;
    if (pass.begin != nullptr || unrecorded >= event_interval_ns_.load(std::memory_order_relaxed))
      record_events(lane, pass, stream);
  }

  // The kernel or graph of this key is gone; another one may get the key.
  void forget(std::uint64_t key) { durations_.forget(key); }

  // Launches that passed, without those into captures.
  std::uint64_t launches() const { return durations_.launches(); }
  // For tests.
  std::uint64_t in_flight_ns() const { return work_.in_flight_ns(); }
  std::uint64_t cost_ns(std::uint64_t key) { return durations_.find(key).cost_ns.load(); }

 private:
  unsigned turn_word() const { return __atomic_load_n(&turn_.word, __ATOMIC_SEQ_CST); }

  void wait_for_turn(void* stream, std::uint64_t cost);
  void record_events(StreamLane& lane, const Pass& pass, void* stream);
  bool enter(unsigned word, StreamLane& lane, std::uint64_t cost) REGATTA_REQUIRES(mutex_);
  bool is_over(unsigned word) const REGATTA_REQUIRES(mutex_);
  bool close_if_idle() REGATTA_REQUIRES(mutex_);
  void set_activity(unsigned turn, regatta_activity activity) REGATTA_REQUIRES(mutex_);
  std::uint64_t expected_end() const REGATTA_REQUIRES(mutex_);
  void push(TimedSpan span) REGATTA_REQUIRES(mutex_);
  void hold_back(unsigned word) REGATTA_REQUIRES(mutex_);
  void reconnect() REGATTA_REQUIRES(mutex_);
  void start_worker() REGATTA_REQUIRES(mutex_);
  void run_worker();
  void complete_spans() REGATTA_REQUIRES(mutex_);
  void complete_unrecorded(MutexLock& lock) REGATTA_REQUIRES(mutex_);
  void report_idle(MutexLock& lock) REGATTA_REQUIRES(mutex_);
  bool launches_again(unsigned word, MutexLock& lock) REGATTA_REQUIRES(mutex_);
  std::uint64_t room_at(std::uint64_t now_ns) const REGATTA_REQUIRES(mutex_);
  void publish_marks() REGATTA_REQUIRES(mutex_);

  Client& client_;
  StreamEvents& events_;
  const regatta_turn& turn_;
  const unsigned& working_processes_;
  WorkInFlight work_;
  alignas(64) std::atomic<std::uint64_t> limit_{0};  // of launched work; 0: check first
  std::atomic<std::uint64_t> lane_limit_{StreamLanes::kUnlimited};
  std::atomic<unsigned> open_word_{0};
  std::atomic<std::uint64_t> event_interval_ns_{50'000};
  KernelDurations durations_{os::monotonic_ns()};
  StreamLanes lanes_;

  Mutex mutex_;
  ConditionVariable progress_;     // work has ended
  ConditionVariable worker_wake_;  // the worker has something to do
  std::deque<TimedSpan> spans_ REGATTA_GUARDED_BY(mutex_);
  WorkPage page_ REGATTA_GUARDED_BY(mutex_);
  DaemonNotifier notifier_ REGATTA_GUARDED_BY(mutex_);
  LaunchGaps gaps_ REGATTA_GUARDED_BY(mutex_);
  unsigned entered_turn_ REGATTA_GUARDED_BY(mutex_) = ~0U;  // number of the last turn we entered
  std::uint64_t entered_at_ns_ REGATTA_GUARDED_BY(mutex_) = 0;
  int waiting_ REGATTA_GUARDED_BY(mutex_) = 0;
  bool stops_ REGATTA_GUARDED_BY(mutex_) = false;
  SpanCompletion completion_{events_, work_, mutex_};  // the worker's
  std::thread worker_;
};

}  // namespace regatta::sharing
