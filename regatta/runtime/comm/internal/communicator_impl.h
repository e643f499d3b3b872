// comm/internal/communicator_impl.h: what a communicator is made of; not for its users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/collective/algorithms.h"
#include "regatta/model/collective/call.h"
#include "regatta/model/collective/candidates.h"
#include "regatta/model/cost/hierarchical_layout.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/algorithm_selector.h"
#include "regatta/runtime/comm/internal/engine/operation.h"
#include "regatta/runtime/comm/internal/engine/world.h"
#include "regatta/runtime/comm/internal/shm/shm_group.h"
#include "regatta/runtime/comm/internal/transport/bootstrap.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::comm {

// Where a rank can meet the others of a new group inside their server.
struct SharedMemorySlot {
  GroupStart start;
  std::int32_t region = -1;
  std::int32_t reaches_all = 0;  // it has the memory of every one of them
};

// What a rank of the parent tells the others when a communicator is split.
struct SplitRequest {
  std::int64_t color = 0;
  std::uint64_t free_regions = 0;
};

// What all communicators of a world share.
struct WorldConfig {
  cost::RankLocations sites;  // by rank of the world
  NetworkParameters network;
  Setting forced;
  Measure measure = Measure::kNothing;
  std::vector<TuningChoice> loaded;  // by an earlier run
};

struct Communicator::Impl {
  std::shared_ptr<World> world;  // null: the caller of split() took no part
  std::shared_ptr<CommunicatorState> group;
  std::shared_ptr<const CommunicatorOptions> options;  // of the world, by its ranks
  std::shared_ptr<const WorldConfig> world_config;
  std::shared_ptr<ShmGroup> shm;  // when all ranks share a server and a region was free
  std::uint32_t collectives = 0;  // calls so far
  std::uint32_t splits = 0;
  bool is_shrunk = false;
  std::map<int, std::uint32_t> sends;     // by rank
  std::map<int, std::uint32_t> receives;  // by rank

  GroupPosition group_position() const {
    return {group->rank, static_cast<int>(group->members.size())};
  }

  // The world of the ranks that have met: rank `rank` of it. `network`: what is known of it, the
  // same on all ranks; null: find out.
  static Result<std::unique_ptr<Impl>> create(int rank, RendezvousResult rendezvous,
                                              const CommunicatorOptions& options,
                                              const NetworkParameters* network);

  // An error unless this is the communicator of a whole world: "shrink".
  Status require_world(const std::string& call) const;
  // The communicator of the ranks that are left; nothing when some were lost meanwhile: try again.
  Result<std::unique_ptr<Impl>> try_shrink();

  // code: encode_call() or encode_transfer().
  std::unique_ptr<Operation> make(std::uint64_t code, std::size_t bytes) const;

  // Shows the communicator to who watches.
  void enter_watch();

  // Who chooses how the collectives go over the network, for where the members are.
  void create_algorithm_selector() const;
  // The same inside a server, once the group is there.
  void tune_shared() const;

  SharedMemorySlot offer_slot(int region) const;

  // Becomes the communicator of the ranks of `parent` that gave this colour; the `split`-th of
  // them. Gives where this rank can meet the others inside its server.
  SharedMemorySlot init_from_parent(const Impl& parent, std::uint32_t split, int color,
                                    const std::vector<SplitRequest>& requests);

  // `slots`: of the ranks of the group. All of them take the same way: by their shared segments,
  // when each reaches all. A region may have served before: the group starts after what any rank
  // did there.
  Status join_shared(const std::vector<SharedMemorySlot>& slots);

  Reduction reduction(DataType type, ReduceOp op = ReduceOp::kSum) const;

  Handle collective(const Call& call);
  // A call that ended before it began.
  static Handle failed(Code code, std::string message);

  // Begins the operation, or leaves it to the group of calls that it belongs to.
  Handle submit(std::unique_ptr<Operation> operation) const;

  bool has_rank(int rank) const {
    return world != nullptr && rank >= 0 && rank < static_cast<int>(group->members.size());
  }

  // The error of a call with these arguments, or "".
  std::string validate(const std::string& call, Rank peer) const;
  // The same of parts that should be one for each rank.
  std::string validate(const std::string& call, const Parts& parts) const;
};

// The options with as many connections of a pair as a world of that size takes
// (CommunicatorOptions).
CommunicatorOptions fit_connections(CommunicatorOptions options, int world_size);

// For the parts of coll that bring schedules of their own (compress/).
class ScheduleRun {
 public:
  struct Call {
    std::uint64_t code = 0;   // encode_compressed()
    std::uint64_t bytes = 0;  // the argument
    std::string name;         // "all_reduce of 4 MiB in int8"
  };
  // Runs what `build` writes as a collective of the network, where its calls order it. Inside a
  // server it has no order with the collectives that go through shared memory. Messages go over a
  // connection for each equal-cost way, no more: these schedules send to all ranks at once, and
  // many connections into one port are slower (64 MiB in int8 between 4 servers at 1 Gbit/s: 255 to
  // 296 ms over 8 of a pair, 246 ms over 1 or 2).
  static Handle start(Communicator& communicator, const Call& call,
                      const std::function<void(CollectiveSchedule&, const GroupPosition&)>& build);
};

}  // namespace regatta::comm
