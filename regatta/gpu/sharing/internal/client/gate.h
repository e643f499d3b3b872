// sharing/internal/client/gate.h: stands before the launches of one process on one device: lets
// them through while it is the tenant's turn (internal/daemon/dispatch.h), else holds them back.
// Between pass() and launched() the caller gives the work to the driver. Any thread may call.
//
// A thread of the gate's own, made at the first launch, watches the work in flight by marks in the
// streams (marks.h), tells the daemon when the last of a turn has ended and when the process has
// become idle, and learns how long kernels take. Launches into captures pass uncounted; no call of
// the gate touches a stream that is being captured.
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
#include "regatta/gpu/sharing/internal/client/durations.h"
#include "regatta/gpu/sharing/internal/client/marks.h"
#include "regatta/gpu/sharing/internal/ledger/page.h"

namespace regatta::sharing {

class Gate {
 public:
  // Both have to outlive the gate. Nothing starts yet.
  Gate(Client& client, int device, Marks& marks);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate();

  struct Pass {
    Durations::Entry* entry = nullptr;  // null: not counted
    std::uint64_t cost_ns = 0;
    Marks::Mark begin = nullptr;
    bool may_have_waited = false;  // behind the last turn's work: nothing of this one has ended yet
  };

  // Before a launch; `key` by Durations::key_of(). Returns at once while it is our turn and not too
  // much is in flight.
  Pass pass(std::uint64_t key, void* stream) {
    if (marks_.is_captured(stream)) return {};
    Durations::Entry& entry = durations_.find(key);
    const std::uint64_t cost = entry.cost_ns.load(std::memory_order_relaxed);
    // First the count, then a look: who closes does it the other way round.
    const std::uint64_t before = launched_.fetch_add(cost);
    const std::uint64_t lane_limit = lane_limit_.load(std::memory_order_relaxed);
    if (before >= limit_.load() || turn_word() != open_word_.load(std::memory_order_relaxed) ||
        (lane_limit != kUnknown && lane_of(stream).in_flight_ns() >= lane_limit))
      wait_for_turn(stream, cost);
    const bool is_timed = Durations::is_to_be_timed(entry);
    return {&entry, cost, is_timed ? marks_.record(stream) : nullptr,
            origin_ns_.load(std::memory_order_relaxed) == kUnknown};
  }

  // After the launch, also when it failed.
  void launched(const Pass& pass, void* stream) {
    if (pass.entry == nullptr) return;
    Lane& lane = lane_of(stream);
    const std::uint64_t unmarked =
        lane.unmarked_ns.fetch_add(pass.cost_ns, std::memory_order_relaxed) + pass.cost_ns;
    if (pass.begin != nullptr || unmarked >= mark_every_ns_.load(std::memory_order_relaxed))
      mark(lane, pass, stream);
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
    std::atomic<std::uint64_t> marked_ns{0};    // in flight, before the last mark
    std::atomic<std::uint64_t> unmarked_ns{0};  // launched after it
    // With mutex_ held.
    std::uint64_t ends_ns = 0;  // if it never waits for other streams' work
    unsigned turn = 0;          // the last one in which it was used, by turns_

    std::uint64_t in_flight_ns() const {
      return marked_ns.load(std::memory_order_relaxed) +
             unmarked_ns.load(std::memory_order_relaxed);
    }
  };
  struct Mark {
    Marks::Mark begin = nullptr;
    Marks::Mark end = nullptr;
    std::uint64_t cost_ns = 0;
    Durations::Entry* entry = nullptr;
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
  void mark(Lane& lane, const Pass& pass, void* stream);

  // All below with mutex_ held.
  using Lock = std::unique_lock<std::mutex>;
  bool enter(unsigned word, Lane& lane, std::uint64_t cost);
  std::uint64_t lane_room(std::uint64_t room) const;
  bool is_over(unsigned word) const;
  bool is_drained();
  void say(unsigned number, regatta_doing doing);
  void say_end(std::uint64_t ends_ns);
  std::uint64_t expected_end() const;
  void push(Mark mark);
  void tell_used();
  void ring();
  void hold_back(Lock& lock, unsigned word);
  void reconnect(Lock& lock);
  bool is_daemon_lost();
  bool is_free() const;
  void start_agent();
  void run_agent();
  void finish(std::uint64_t cost_ns, std::uint64_t used_ns);
  std::uint64_t learn(const Mark& mark);
  void finish_mark(const Mark& mark);
  void finish_marks(Lock& lock);
  void finish_reached(std::vector<Mark>& marks);
  void finish_unmarked(Lock& lock);
  void report(Lock& lock);

  Client& client_;
  const int device_;
  Marks& marks_;
  const regatta_turn& turn_;

  // In ns of learned cost since the gate was made.
  alignas(64) std::atomic<std::uint64_t> launched_{0};
  alignas(64) std::atomic<std::uint64_t> limit_{0};  // of launched_; 0: look first
  std::atomic<std::uint64_t> lane_limit_{kUnknown};  // of what is in flight of each lane
  std::atomic<unsigned> open_word_{0};
  std::atomic<std::uint64_t> mark_every_ns_{50'000};
  std::atomic<std::uint64_t> completed_{0};
  // The clock when nothing of it had been done, had the device worked without a pause since.
  std::atomic<std::uint64_t> origin_ns_{kUnknown};
  std::uint64_t seen_at_ns_ = 0;  // the agent's: when completed_ last grew
  std::atomic<std::uint64_t> used_ns_{0};
  BusyTime busy_;                          // the agent's
  std::atomic<bool> is_new_period_{true};  // nothing was in flight, since busy_ was told
  std::atomic<std::uint64_t> period_at_ns_{0};
  std::atomic<std::uint64_t> at_once_{BusyTime::kOne};
  Durations durations_;
  std::array<Lane, kLanes> lanes_{};

  std::mutex mutex_;
  std::condition_variable progress_;  // work has ended
  std::condition_variable work_;      // for the agent
  std::deque<Mark> in_flight_;
  regatta_doing doing_ = REGATTA_IDLE;
  unsigned entered_ = ~0U;  // number of the turn in which we launched first
  std::uint64_t entered_at_ns_ = 0;
  unsigned turns_ = 0;  // that we entered
  int waiting_ = 0;
  bool stops_ = false;
  bool is_reconnecting_ = false;
  std::uint64_t lost_since_ns_ = 0;  // 0: one is there
  std::uint64_t next_try_ns_ = 0;
  os::UniqueFd bell_;
  std::thread agent_;
};

}  // namespace regatta::sharing
