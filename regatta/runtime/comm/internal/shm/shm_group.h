// comm/internal/shm/shm_group.h: the collectives of one communicator whose ranks share a server.
// Whoever waits for an operation drives it; where nobody waits, the helper thread does (helper.h).
// Operations run in the order of the calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/handle_state.h"
#include "regatta/runtime/comm/internal/engine/stalled_call.h"
#include "regatta/runtime/comm/internal/shm/futex_event.h"
#include "regatta/runtime/comm/internal/shm/in_place.h"
#include "regatta/runtime/comm/internal/shm/shared_tuner.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"
#include "regatta/runtime/comm/internal/shm/staged.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {

// Where a group's counters begin: a region may have served another group before. The same on all
// ranks of the group.
struct GroupStart {
  std::uint64_t sequence = 0;
  std::uint64_t rounds = 0;
};

struct ShmGroupSetup {
  ShmPeers peers;
  std::vector<std::string> names;                 // by rank of the group
  const SharedSegment* shared_segment = nullptr;  // the own one
  GroupStart start;
  std::uint64_t id = 0;  // of the communicator
  SpinPolicy spin_policy;
  bool drives_in_wait = true;  // else the helper alone moves data
};

// Asks the helper thread to look after the groups: now, or a moment later if nobody waits by then.
class HelperWaker {
 public:
  virtual ~HelperWaker() = default;
  virtual void call(Seconds delay) = 0;
};

class ShmGroup final : public ProgressDriver {
 public:
  ShmGroup(ShmGroupSetup setup, HelperWaker& helper);
  ~ShmGroup() override;

  // How this rank writes its stages from the next operation on; the others need not know.
  void write_stages(StoreMode store) { stage_ = store; }

  // Before the first call of its users: which chunks are fastest is found out from now on.
  void tune(SharedTuner::Setup setup) { tuner_ = std::make_unique<SharedTuner>(std::move(setup)); }
  // Any thread.
  std::vector<TuningChoice> choices() const;
  bool is_tuned() const { return tuner_ == nullptr || tuner_->is_settled(); }
  // Operations are written down from the next one on; null: not.
  void keep_log(std::shared_ptr<GroupLog> log);

  // From the calling thread of the communicator.
  std::shared_ptr<Handle::State> submit(const Call& call);
  // Returns when the operation ended: drives it, or sleeps while somebody else does.
  void wait(Handle::State& state) override;
  void poll() override;

  // The helper's part: goes on with what nobody else drives, without waiting.
  enum class Progress { kIdle, kMoved, kBlocked };
  Progress make_progress();
  // Whether make_progress() could go on.
  bool is_ready() const;

  // Ends all operations, and every later one, with the error.
  void fail(const Error& error);
  std::optional<Error> error() const;
  bool is_idle() const {
    const std::uint64_t ended = ended_.load(std::memory_order_acquire);
    return submitted_.load(std::memory_order_relaxed) == ended;
  }
  // Changes whenever an operation gets on: what stands still while is_idle() is false is stuck.
  std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  // Of the oldest operation, as any thread may ask. What it is: "all_reduce of 4 MiB".
  std::string describe_blocked() const;
  // The ranks of the group that it waits for.
  std::vector<int> waited_for() const;
  // All of that, and what the others show of it; ranks are those of the group, `since` is left out.
  // Sequence 0: the operation has only begun.
  StalledCall stalled_call() const;
  std::uint64_t id() const { return setup_.id; }
  // The last operation of this rank that the others know of, and what it is.
  std::uint64_t entered() const;
  MemberReport report(int peer, std::uint64_t sequence) const;
  // Where this rank is, seen from that operation.
  MemberReport member_report(std::uint64_t sequence) const;

  // Before the end of the group, when nobody else uses it any more: waits for its operations, then
  // ends those that are left with an error.
  void finish(Seconds timeout);

  // How many operations and rounds were begun: what the next group in this region starts from.
  GroupStart reached() const { return {sequence_, rounds_}; }

 private:
  enum class Point { kPosted, kRounds, kInPlace };
  // What the counters must reach before the operation gets on.
  enum class Wait { kPosts, kFilled, kCombined };
  struct Operation {
    Call call;
    std::shared_ptr<Handle::State> state;
    std::uint64_t sequence = 0;
    std::size_t chunk_bytes = 0;  // of staged rounds; 0: what fits
    std::uint64_t code = 0;       // encode_call()
    Seconds started;
    std::uint64_t first_round = 0;  // counted over the life of the group
    Point point = Point::kPosted;
    Staged staged;
    std::uint64_t round = 0;   // within the call: the one to combine next, or to take
    std::uint64_t filled = 0;  // rounds staged so far
    bool is_combined = false;  // `round` waits for its take
    bool is_checked = false;   // all ranks called the same
    Wait wait = Wait::kPosts;
    std::uint64_t wait_for = 0;
  };

  // The entry of a region where the operation is shown.
  static unsigned slot_of(std::uint64_t sequence) {
    return static_cast<unsigned>(sequence % kSlots);
  }
  bool start_now(const Call& call, const std::shared_ptr<Handle::State>& state);
  void start(Operation& operation);
  bool advance();
  void wait_for_peers();  // that the first of the queue waits for
  bool advance(Operation& operation);
  bool advance_rounds(Operation& operation);
  bool fill_ahead(Operation& operation);
  bool run_round(Operation& operation);
  bool choose_method(Operation& operation);
  bool begin_varying(Operation& operation);
  bool check_same_call(const Operation& operation);
  std::uint64_t moved_bytes(const Operation& operation) const;
  LoggedCall logged(const Operation& operation) const;
  void end(Operation& operation);
  void end_all();
  bool block(Operation& operation, Wait wait, std::uint64_t target);
  bool have_reached(Wait wait, std::uint64_t target) const;
  std::uint64_t counter_of(int peer, Wait wait, std::uint64_t target) const;
  void take_incoming();
  void learn(const Operation& operation, Seconds now);
  void publish(RoundCounter& counter, std::uint64_t rounds);
  std::string name(int peer) const { return setup_.names[static_cast<std::size_t>(peer)]; }

  const ShmGroupSetup setup_;
  HelperWaker& helper_;
  SharedSegmentHeader& own_;

  // Held by whoever drives. What follows is touched with it alone.
  mutable std::mutex drive_;
  std::deque<Operation> queue_;
  std::unique_ptr<SharedTuner> tuner_;
  StoreMode stage_ = StoreMode::kCached;
  std::uint64_t sequence_;
  std::uint64_t rounds_;
  std::shared_ptr<GroupLog> log_;
  std::uint64_t unlogged_ = 0;  // how far the communicator's own count lies behind sequence_

  mutable std::mutex incoming_mutex_;
  std::vector<Operation> incoming_;
  std::optional<Error> error_;  // with incoming_mutex_
  std::atomic<bool> has_incoming_ = false;
  std::atomic<bool> has_failed_ = false;
  std::atomic<std::uint64_t> submitted_ = 0;  // operations; the caller's thread counts
  std::atomic<std::uint64_t> ended_ = 0;      // whoever drives counts
  std::atomic<std::uint64_t> progress_ = 0;   // the same
  std::shared_ptr<Handle::State> spare_;      // of the caller's thread

  // What the driver waits for, for the other threads.
  struct Blocked {
    std::atomic<std::uint64_t> sequence = 0;
    std::atomic<std::uint64_t> call = 0;
    std::atomic<std::uint64_t> bytes = 0;
    std::atomic<Wait> wait = Wait::kPosts;
    std::atomic<std::uint64_t> target = 0;
  };
  Blocked blocked_;
};

}  // namespace regatta::comm
