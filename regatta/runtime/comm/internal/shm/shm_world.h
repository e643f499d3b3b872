// comm/internal/shm/shm_world.h: what a rank shares with the ranks of its server: their shared
// segments, the groups that use them, and the helper thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/stalled_call.h"
#include "regatta/runtime/comm/internal/shm/buffer_pool.h"
#include "regatta/runtime/comm/internal/shm/helper_thread.h"
#include "regatta/runtime/comm/internal/shm/shm_group.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

struct CommunicatorState;

struct ShmWorldSetup {
  int rank = 0;  // of the world
  SharedSegment own;
  std::vector<SharedSegment> shared_segments;  // by rank of the world; closed where none is shared
  std::vector<std::string> names;              // by rank of the world
  bool drives_in_wait = true;
  Seconds close_timeout;  // how long the end of a group waits for its operations
};

class ShmWorld {
 public:
  static Result<std::unique_ptr<ShmWorld>> start(ShmWorldSetup setup);

  // Whether this rank shares memory with all of these ranks of the world, at most kPeersMax.
  bool reaches(const std::vector<int>& members) const;
  // Bit i: region i of the own shared segment is free.
  std::uint64_t free_regions();
  // The least counters that a group in that region may start from at this rank.
  GroupStart start_of(int region) const;

  // The group of this communicator; all of its ranks call it with the same arguments. The region is
  // free on all of them. It takes a few milliseconds to measure which stores are fastest for the
  // stages. The end of the group waits for its operations.
  Result<std::shared_ptr<ShmGroup>> make_group(const CommunicatorState& communicator, int region,
                                               const GroupStart& start);

  // Any thread.
  void fail(const Error& error);
  // After fail(), on any thread: returns when no operation touches memory any more.
  void settle();
  // The error of a group that failed by itself, also after its end.
  std::optional<Error> error();
  // An operation that waits for this rank of the world, which has died: "all_reduce of 4 MiB".
  std::optional<std::string> operation_waiting_for(int world_rank);
  // The oldest operation of each group that made no progress for `still`. It compares each group
  // with the call before, so it is called regularly.
  std::vector<StalledCall> find_stalled(Seconds now, Seconds still);
  // This rank's state with respect to an operation of a communicator; nothing where that is no
  // group.
  std::optional<MemberReport> member_report(std::uint64_t communicator, std::uint32_t sequence);
  // Enters an operation under way as the report's other call; false when there is none.
  bool report_running(MemberReport& report);

  BufferPool& buffers() { return *buffers_; }

 private:
  struct Entry {
    std::weak_ptr<ShmGroup> group;
    std::vector<int> members;
    std::shared_ptr<GroupLog> log;
    std::uint64_t steps = 0;  // at the last find_stalled()
    Seconds since;
  };
  // A region whose group ended here; other ranks may still read its last operation.
  struct Retired {
    int region = 0;
    std::vector<int> members;
    std::uint64_t sequence = 0;
  };

  explicit ShmWorld(ShmWorldSetup setup)
      : buffers_(std::make_shared<BufferPool>(std::move(setup.own))), setup_(std::move(setup)) {}
  void retire(std::unique_ptr<ShmGroup> group, int region, const std::vector<int>& members);
  std::vector<std::shared_ptr<ShmGroup>> groups();
  const SharedSegment& own() const { return buffers_->shared_segment(); }
  const SharedSegment& shared_segment_of(int world_rank) const;

  std::shared_ptr<BufferPool> buffers_;
  ShmWorldSetup setup_;
  SpinPolicy spin_policy_;
  Mutex mutex_;
  std::vector<Entry> entries_ REGATTA_GUARDED_BY(mutex_);
  std::vector<Retired> retired_ REGATTA_GUARDED_BY(mutex_);
  std::uint64_t used_regions_ REGATTA_GUARDED_BY(mutex_) = 0;  // a bit each
  std::optional<Error> error_ REGATTA_GUARDED_BY(mutex_);
  std::optional<Error> retired_error_ REGATTA_GUARDED_BY(mutex_);  // of a group that ended
  HelperThread helper_thread_;  // the last: its thread uses all the others
};

}  // namespace regatta::comm
