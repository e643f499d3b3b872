// comm/internal/communicator_impl.h: the state of a communicator.
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

// The region that a rank offers for a new group inside its server.
struct SharedMemorySlot {
  GroupStart start;
  std::int32_t region = -1;
  std::int32_t reaches_all = 0;  // it maps the memory of all ranks of the group
};

// The message of a rank of the parent to the others when a communicator is split.
struct SplitRequest {
  std::int64_t color = 0;
  std::uint64_t free_regions = 0;
};

// The configuration that all communicators of a world share.
struct WorldConfig {
  cost::RankLocations sites;  // by rank of the world
  NetworkParameters network;
  Setting forced;
  Measure measure = Measure::kNothing;
  std::vector<TuningChoice> loaded;  // by an earlier run
};

struct Communicator::Impl {
  std::shared_ptr<World> world;  // null: split() with color < 0
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

  // The world of the ranks of a rendezvous: rank `rank` of it. `network`: its known parameters, the
  // same on all ranks; null: measure them.
  static Result<std::unique_ptr<Impl>> create(int rank, RendezvousResult rendezvous,
                                              const CommunicatorOptions& options,
                                              const NetworkParameters* network);

  // An error unless this is the communicator of a whole world: "shrink".
  Status require_world(const std::string& call) const;
  // The communicator of the remaining ranks; null when more were lost meanwhile: try again.
  Result<std::unique_ptr<Impl>> try_shrink();

  // code: encode_call() or encode_transfer().
  std::unique_ptr<Operation> make(std::uint64_t code, std::size_t bytes) const;

  // Enters the communicator into the watch file.
  void enter_watch();

  // For the collectives over the network, by the locations of the members.
  void create_algorithm_selector() const;
  // For the collectives inside a server, after join_shared().
  void tune_shared() const;

  SharedMemorySlot offer_slot(int region) const;

  // Becomes the communicator of the ranks of `parent` that gave this colour in its `split`-th
  // split(). Returns the region that this rank offers.
  SharedMemorySlot init_from_parent(const Impl& parent, std::uint32_t split, int color,
                                    const std::vector<SplitRequest>& requests);

  // `slots`: of the ranks of the group. Makes the group inside the server when each rank reaches
  // all others, the same decision on all ranks. It starts after all counters of an earlier group in
  // the region.
  Status join_shared(const std::vector<SharedMemorySlot>& slots);

  Reduction reduction(DataType type, ReduceOp op = ReduceOp::kSum) const;

  // The buffers of a collective without varying parts.
  struct Arguments {
    const void* in = nullptr;
    void* out = nullptr;
    std::size_t count = 0;  // elements, as in communicator.h
    DataType type = DataType::kU8;
  };
  Handle collective(CallKind kind, const Arguments& arguments, ReduceOp op = ReduceOp::kSum,
                    Rank root = Rank{0});
  Handle collective(const Call& call);
  // A call that ended before it began.
  static Handle failed(Code code, std::string message);

  // Begins the operation, or adds it to the group of calls of this thread.
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

// For the parts of comm that have schedules of their own (compress/).
class ScheduleRun {
 public:
  struct Call {
    std::uint64_t code = 0;   // encode_compressed()
    std::uint64_t bytes = 0;  // the argument
    std::string name;         // "all_reduce of 4 MiB in int8"
  };
  // Runs the schedule that `build` writes as a collective over the network, in the order of the
  // calls. Inside a server it has no order with the collectives through shared memory. Messages use
  // one connection for each equal-cost path: these schedules send to all ranks at once, and
  // many connections into one port are slower (64 MiB in int8 between 4 servers at 1 Gbit/s: 255 to
  // 296 ms over 8 of a pair, 246 ms over 1 or 2).
  static Handle start(Communicator& communicator, const Call& call,
                      const std::function<void(CollectiveSchedule&, const GroupPosition&)>& build);
};

}  // namespace regatta::comm
