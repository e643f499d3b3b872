// comm/internal/shm/shm_group.h: the collectives of one communicator whose ranks share a server:
// the queue of its operations, and which thread drives them. A thread that waits for an operation
// drives the group; while no thread waits, the helper thread does (helper_thread.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/handle_state.h"
#include "regatta/runtime/comm/internal/shm/futex_event.h"
#include "regatta/runtime/comm/internal/shm/shared_tuner.h"
#include "regatta/runtime/comm/internal/shm/shm_executor.h"
#include "regatta/runtime/comm/internal/shm/shm_group_progress.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {

struct ShmGroupSetup {
  ShmPeers peers;
  const SharedSegment* shared_segment = nullptr;  // this rank's
  GroupStart start;
  std::uint64_t id = 0;  // of the communicator
  SpinPolicy spin_policy;
  bool drives_in_wait = true;  // else the helper alone moves data
};

// Wakes the helper thread: now, or after `delay` unless the group is idle by then.
class HelperWaker {
 public:
  virtual ~HelperWaker() = default;
  virtual void call(Seconds delay) = 0;
};

class ShmGroup final : public ProgressDriver {
 public:
  ShmGroup(ShmGroupSetup setup, HelperWaker& helper);
  ~ShmGroup() override;

  // How this rank writes its stages from the next operation on; the other ranks need not know.
  void set_stage_stores(StoreMode store);
  // Before the first call of the communicator's user: chunks are tuned from now on.
  void tune(const SharedTuner::Setup& setup);
  // Logs operations from the next one on; null: not.
  void set_log(std::shared_ptr<GroupLog> log);

  // From the calling thread of the communicator.
  std::shared_ptr<Handle::State> submit(const Call& call);
  // Returns when the operation ended: drives it, or sleeps while another thread does.
  void wait(Handle::State& state) override;
  void poll() override;

  // For the helper thread: continues what no other thread drives, without waiting.
  enum class Progress { kIdle, kMoved, kBlocked };
  Progress make_progress();
  // Whether make_progress() could continue.
  bool is_ready() const;

  // Any thread.
  const ShmGroupProgress& progress() const { return progress_; }
  std::vector<TuningChoice> choices() const;
  bool is_tuned() const { return tuner_ == nullptr || tuner_->is_settled(); }
  // Ends all operations, and every later one, with the error.
  void fail(const Error& error);
  std::optional<Error> error() const;

  // Before the end of the group, when no other thread uses it any more: waits for its operations,
  // then ends the remaining ones with an error.
  void finish(Seconds timeout);
  // Where the next group in this region starts.
  GroupStart reached() const;

 private:
  bool start_now(const Call& call, const std::shared_ptr<Handle::State>& state);
  void start_first(const Call& call, const std::shared_ptr<Handle::State>& state, bool is_small)
      REGATTA_REQUIRES(drive_);
  void drive_until_done(const Handle::State& state) REGATTA_REQUIRES(drive_);
  bool advance() REGATTA_REQUIRES(drive_);
  void wait_for_peers() REGATTA_REQUIRES(drive_);
  void accept_incoming() REGATTA_REQUIRES(drive_);
  void abort_all() REGATTA_REQUIRES(drive_);

  // Constant after tune().
  const ShmGroupSetup setup_;
  HelperWaker& helper_;
  std::unique_ptr<SharedTuner> tuner_;

  ShmGroupProgress progress_;
  mutable Mutex drive_;  // held by the thread that drives
  ShmExecutor executor_ REGATTA_GUARDED_BY(drive_);
  std::deque<ShmOperation> queue_ REGATTA_GUARDED_BY(drive_);

  mutable Mutex incoming_mutex_;  // taken after drive_ where both are
  std::vector<ShmOperation> incoming_ REGATTA_GUARDED_BY(incoming_mutex_);
  std::optional<Error> error_ REGATTA_GUARDED_BY(incoming_mutex_);
  std::atomic<bool> has_incoming_ = false;
  std::atomic<bool> has_failed_ = false;
  std::shared_ptr<Handle::State> spare_;  // of the calling thread
};

}  // namespace regatta::comm
