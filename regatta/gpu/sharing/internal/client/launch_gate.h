// sharing/internal/client/launch_gate.h: stands before the launches of one process on one device:
// lets them through while it is the tenant's turn (internal/daemon/turn_scheduler.h), else holds
// them back. Between pass() and launched() the caller gives the work to the driver. Any thread may
// call.
//
// A thread of the gate's own, made at the first launch, watches the work in flight by events in the
// streams (stream_events.h), tells the daemon when the last of a turn has ended and when the
// process has become idle, and learns how long kernels take. Launches into captures pass uncounted;
// no call of the gate touches a stream that is being captured.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/client/busy_time.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/client/kernel_durations.h"
#include "regatta/gpu/sharing/internal/client/stream_events.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"

namespace regatta::sharing {

class LaunchGate {
 public:
  // Both have to outlive the gate. Nothing starts yet.
  LaunchGate(Client& client, int device, StreamEvents& events);
  LaunchGate(const LaunchGate&) = delete;
  LaunchGate& operator=(const LaunchGate&) = delete;
  ~LaunchGate();

  struct Pass {
    KernelDurations::Entry* entry = nullptr;  // null: not counted
    std::uint64_t cost_ns = 0;
    StreamEvents::Event begin = nullptr;
    bool may_have_waited = false;  // behind the last turn's work: nothing of this one has ended yet
  };

  // Before a launch; `key` by KernelDurations::key_of(). Returns at once while it is our turn and
  // not too much is in flight.
  Pass pass(std::uint64_t key, void* stream) {
    if (events_.is_captured(stream)) return {};
    KernelDurations::Entry& entry = durations_.find(key);
    const std::uint64_t cost = entry.cost_ns.load(std::memory_order_relaxed);
    // First the count, then a look: who closes does it the other way round.
    const std::uint64_t before = launched_.fetch_add(cost);
    const std::uint64_t lane_limit = lane_limit_.load(std::memory_order_relaxed);
    if (before >= limit_.load() || turn_word() != open_word_.load(std::memory_order_relaxed) ||
        (lane_limit != kUnknown && lane_of(stream).in_flight_ns() >= lane_limit))
      wait_for_turn(stream, cost);
    const bool is_timed = KernelDurations::is_to_be_timed(entry);
    return {&entry, cost, is_timed ? events_.record(stream) : nullptr,
            origin_ns_.load(std::memory_order_relaxed) == kUnknown};
  }

  // After the launch, also when it failed.
  void launched(const Pass& pass, void* stream) {
    if (pass.entry == nullptr) return;
    Lane& lane = lane_of(stream);
    const std::uint64_t unrecorded =
        lane.unrecorded_ns.fetch_add(pass.cost_ns, std::memory_order_relaxed) + pass.cost_ns;
    if (pass.begin != nullptr || unrecorded >= event_interval_ns_.load(std::memory_order_relaxed))
      record_events(lane, pass, stream);
  }

  // What had this key is gone; something else may get it.
  void forget(std::uint64_t key) { durations_.forget(key); }

  // That it has let pass, not counting those into captures.
  std::uint64_t launches() const { return durations_.launches(); }
  // In ns of what was learned; for tests.
  std::uint64_t in_flight_ns() const { return launched_.load() - completed_.load(); }
  std::uint64_t cost_ns(std::uint64_t key) { return durations_.find(key).cost_ns.load(); }

 private:
  // A stream, or several whose addresses say the same. In ns of learned cost.
  struct Lane {
    std::atomic<std::uint64_t> recorded_ns{0};    // in flight, before the last mark
    std::atomic<std::uint64_t> unrecorded_ns{0};  // launched after it
    // With mutex_ held.
    std::uint64_t ends_ns = 0;  // if it never waits for other streams' work
    unsigned turn = 0;          // the last one in which it was used, by turns_

    std::uint64_t in_flight_ns() const {
      return recorded_ns.load(std::memory_order_relaxed) +
             unrecorded_ns.load(std::memory_order_relaxed);
    }
  };
  struct TimedSpan {
    StreamEvents::Event begin = nullptr;
    StreamEvents::Event end = nullptr;
    std::uint64_t cost_ns = 0;
    KernelDurations::Entry* entry = nullptr;
    std::uint64_t timed_cost_ns = 0;  // of the launch between begin and end
    bool may_have_waited = false;
    Lane* lane = nullptr;
    void* stream = nullptr;
  };
  static constexpr std::size_t kLanes = 64;
  static constexpr std::uint64_t kUnknown = ~0ULL;

  unsigned turn_word() const { return __atomic_load_n(&turn_.word, __ATOMIC_SEQ_CST); }
  Lane& lane_of(void* stream) {
    const auto address = reinterpret_cast<std::uintptr_t>(stream);
    return lanes_[(address * 0x9e3779b97f4a7c15ULL) >> 58];
  }

  void wait_for_turn(void* stream, std::uint64_t cost);
  void record_events(Lane& lane, const Pass& pass, void* stream);

  // All below with mutex_ held.
  using Lock = std::unique_lock<std::mutex>;
  bool enter(unsigned word, Lane& lane, std::uint64_t cost);
  std::uint64_t lane_room(std::uint64_t room) const;
  bool is_over(unsigned word) const;
  bool is_drained();
  void say(unsigned number, regatta_activity doing);
  void say_end(std::uint64_t ends_ns);
  std::uint64_t expected_end() const;
  void push(TimedSpan span);
  void tell_used();
  void notify_daemon();
  void hold_back(Lock& lock, unsigned word);
  void reconnect(Lock& lock);
  bool is_daemon_lost();
  bool is_free() const;
  void start_worker();
  void run_worker();
  void finish(std::uint64_t cost_ns, std::uint64_t used_ns);
  std::uint64_t learn(const TimedSpan& span);
  void finish_span(const TimedSpan& span);
  void finish_spans(Lock& lock);
  void finish_reached(std::vector<TimedSpan>& spans);
  void finish_unrecorded(Lock& lock);
  void report(Lock& lock);

  Client& client_;
  const int device_;
  StreamEvents& events_;
  const regatta_turn& turn_;

  // In ns of learned cost since the gate was made.
  alignas(64) std::atomic<std::uint64_t> launched_{0};
  alignas(64) std::atomic<std::uint64_t> limit_{0};  // of launched_; 0: look first
  std::atomic<std::uint64_t> lane_limit_{kUnknown};  // of what is in flight of each lane
  std::atomic<unsigned> open_word_{0};
  std::atomic<std::uint64_t> event_interval_ns_{50'000};
  std::atomic<std::uint64_t> completed_{0};
  // The clock when nothing of it had been done, had the device worked without a pause since.
  std::atomic<std::uint64_t> origin_ns_{kUnknown};
  std::uint64_t seen_at_ns_ = 0;  // the worker's: when completed_ last grew
  std::atomic<std::uint64_t> used_ns_{0};
  BusyTime busy_;                          // the worker's
  std::atomic<bool> is_new_period_{true};  // nothing was in flight, since busy_ was told
  std::atomic<std::uint64_t> period_at_ns_{0};
  std::atomic<std::uint64_t> concurrency_{BusyTime::kOne};
  KernelDurations durations_;
  std::array<Lane, kLanes> lanes_{};

  std::mutex mutex_;
  std::condition_variable progress_;  // work has ended
  std::condition_variable work_;      // for the worker
  std::deque<TimedSpan> in_flight_;
  regatta_activity doing_ = REGATTA_IDLE;
  unsigned entered_ = ~0U;  // number of the turn in which we launched first
  std::uint64_t entered_at_ns_ = 0;
  unsigned turns_ = 0;  // that we entered
  int waiting_ = 0;
  bool stops_ = false;
  bool is_reconnecting_ = false;
  std::uint64_t lost_since_ns_ = 0;  // 0: one is there
  std::uint64_t next_try_ns_ = 0;
  os::UniqueFd event_connection_;
  std::thread worker_;
};

}  // namespace regatta::sharing
