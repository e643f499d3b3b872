// comm/internal/shm/shm_executor.h: carries out the operations of a group, one at a time and in the
// order of the calls. It moves as much as can be moved and returns; it never waits. The smallest
// calls go through slots (slot_exchange.h), calls between shared buffers are done in place
// (in_place.h), all others in staged rounds (staged.h). Used by the thread that drives the group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/handle_state.h"
#include "regatta/runtime/comm/internal/shm/peer_counters.h"
#include "regatta/runtime/comm/internal/shm/shared_tuner.h"
#include "regatta/runtime/comm/internal/shm/shm_group_progress.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"
#include "regatta/runtime/comm/internal/shm/staged.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {

// Where a group's counters begin: a region may have served another group before. The same on all
// ranks of the group.
struct GroupStart {
  std::uint64_t sequence = 0;
  std::uint64_t rounds = 0;
};

struct ShmOperation {
  enum class Phase : std::uint8_t {
    kAnnounced,  // the other ranks have not announced theirs yet
    kRounds,
    kInPlace,
  };

  Call call;
  std::shared_ptr<Handle::State> state;
  std::uint64_t sequence = 0;   // within the group, from 1; 0: not started
  std::size_t chunk_bytes = 0;  // of staged rounds; 0: the default
  std::uint64_t code = 0;       // encode_call()
  Seconds started;
  std::uint64_t first_round = 0;  // counted over the life of the group
  Phase phase = Phase::kAnnounced;
  Staged staged;
  std::uint64_t round = 0;    // within the call: the one that is combined next
  std::uint64_t filled = 0;   // rounds staged so far
  bool is_combined = false;   // `round` is combined, its results are not copied yet
  bool is_same_call = false;  // all ranks made the same call
  CounterTarget target;       // what it waits for
};

class ShmExecutor {
 public:
  // All references outlive this. `shared_segment`: this rank's.
  ShmExecutor(const ShmPeers& peers, const SharedSegment& shared_segment, const GroupStart& start,
              ShmGroupProgress& progress);

  // How this rank writes its stages from the next operation on; the other ranks need not know.
  void set_stage_stores(StoreMode store) { stage_stores_ = store; }
  // Chooses the chunks from the next operation on; it outlives this.
  void set_tuner(SharedTuner* tuner) { tuner_ = tuner; }
  // Logs operations from the next one on; null: not.
  void set_log(std::shared_ptr<GroupLog> log);

  // Announces the operation to the other ranks.
  void start(ShmOperation& operation);
  // Continues a started operation. True when all its data has moved; false when it waits for
  // `operation.target`. An error is one of the whole group.
  Result<bool> advance(ShmOperation& operation);
  // After advance() was true, or with the error of the group at any time: completes the handle.
  void end(ShmOperation& operation);
  void abort(ShmOperation& operation, const Error& error);

  // How many operations and rounds were begun: where the next group in this region starts.
  GroupStart reached() const { return {sequence_, rounds_}; }

 private:
  CallAnnouncement& announcement(const ShmOperation& operation) const;
  Result<bool> advance_rounds(ShmOperation& operation);
  bool fill_ahead(ShmOperation& operation);
  Result<bool> run_round(ShmOperation& operation);
  bool run_in_place_or_plan_rounds(ShmOperation& operation);
  Result<bool> begin_varying(ShmOperation& operation);
  Status check_same_call(const ShmOperation& operation) const;
  std::uint64_t moved_bytes(const ShmOperation& operation) const;
  LoggedCall logged(const ShmOperation& operation) const;
  bool must_wait(ShmOperation& operation, PeerCounter counter, std::uint64_t value);
  void record_times(const ShmOperation& operation, Seconds now);
  void publish(RoundCounter& counter, std::uint64_t rounds);

  const ShmPeers& peers_;
  const SharedSegment& shared_segment_;
  ShmGroupProgress& progress_;
  SharedTuner* tuner_ = nullptr;
  StoreMode stage_stores_ = StoreMode::kCached;
  std::uint64_t sequence_;
  std::uint64_t rounds_;
  std::shared_ptr<GroupLog> log_;
  std::uint64_t unlogged_ = 0;  // operations that came before the log
};

}  // namespace regatta::comm
