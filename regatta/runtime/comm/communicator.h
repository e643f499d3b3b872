// comm/communicator.h: a group of ranks and the collectives between them: the stable interface.
// Data moves through shared memory inside a server and by RDMA or TCP between servers; the module
// chooses the algorithms. Every call is asynchronous and returns a Handle. Collectives of one
// communicator run one after the other in the order of the calls, which must be the same on all its
// ranks; sends and receives run concurrently, in order per pair of ranks; only waiting orders a
// collective against a send or receive. Operations of distinct communicators run concurrently. A
// result has the same bits on every rank, and in every run with the same ranks unless
// CommunicatorOptions::measure allows trials of algorithms. A count of 0 is allowed everywhere.
// Thread rule: one thread calls into a communicator at a time; distinct communicators are
// independent.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/collective/data_type.h"
#include "regatta/model/collective/setting.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {

struct TuningChoice;  // tuner.h

// An operation under way. Destroying a Handle does not cancel the operation: the buffers must stay
// alive until wait() has returned or done() is true.
class Handle {
 public:
  struct State;
  Handle() = default;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}

  bool done() const;
  // Sleeps (never spins for long) until the operation ended. Errors: kTimeout names the rank that
  // made no progress; kUnavailable names the rank whose process or connection died; kConflict: the
  // ranks made different calls; kInvalidInput: a wrong argument, or a send and its receive, or
  // varying parts, differ in size; kExhausted names the rank that had no memory for it. After any
  // error but a wrong argument, every later call on the communicators of the same world fails with
  // the same error.
  Status wait();
  // When the operation moved its first byte (a receive: when the first one arrived) and when it
  // ended: monotonic clock, to a microsecond.
  Seconds started_at() const;
  Seconds ended_at() const;

 private:
  std::shared_ptr<State> state_;
};

// The parts of a buffer by rank, in elements: counts[k] from offsets[k] on. No offsets: one part
// after the other. Read during the call only.
struct Parts {
  std::span<const std::size_t> counts;
  std::span<const std::size_t> offsets = {};
};

// The two buffers of send_recv().
struct Outgoing {
  const void* data = nullptr;
  std::size_t count = 0;
  Rank to;
};
struct Incoming {
  void* data = nullptr;
  std::size_t count = 0;
  Rank from;
};

// How the ranks find each other: passes on this rank's opaque endpoint text and returns the texts
// of all ranks in rank order. Called once. The launcher implements it (runtime/train).
using Exchange = std::function<Result<std::vector<std::string>>(const std::string& mine)>;

// RDMA between servers, through a device with an active RoCEv2 port at the listen address.
enum class Rdma {
  kAutomatic,  // between ranks that both have one; TCP between others
  kOff,
  kRequired,  // between all servers, or connect() fails and names a rank without a device
};

inline constexpr int kConnectionsMax = 1023;

// Where a rank listens.
struct RankAddress {
  std::string address;  // numeric
  std::uint16_t port = 0;
};

// The TCP connections from one rank to another in a plan.
struct PlannedPorts {
  std::vector<std::uint16_t> ports;  // source ports, one for each connection; 0: any
  int paths = 1;                     // equal-cost paths that the connections take, at most
};

// The ports of the connections of rank `from` to rank `to`, given where all ranks listen. Fewer
// ports than connections: as without a plan.
using SourcePorts =
    std::function<PlannedPorts(const std::vector<RankAddress>& ranks, Rank from, Rank to)>;

// The connections from a rank to another among `world_size` ranks where `wanted` are requested
// (CommunicatorOptions::connections).
int connections_among(int world_size, int wanted);

struct CommunicatorOptions {
  std::string job_token;  // connections without it are refused
  std::string server;     // ranks with the same text share memory
  // Servers with the same text form a scale-up domain, whose links are faster than those between
  // domains: the hierarchical all_reduce works inside domains first. The same on all ranks of a
  // server, without tabs; empty: the value of REGATTA_DOMAIN, else the server is a domain alone.
  std::string domain;
  std::string listen_address = "127.0.0.1";  // the address of this rank's NIC
  // Rate of this rank's network link in one direction; 0: unknown. Where links differ, all ranks
  // divide the work by it. Give it on all ranks or on none.
  BytesPerSecond link_rate;
  // A peer counts as dead when it is unreachable (no acknowledgement, connection lost) for this
  // long. Both timeouts are at most a day.
  Seconds peer_timeout{5};
  // An operation that made no progress for this long fails with kTimeout (up to 1 s later where
  // ranks do not answer the query for their progress); 0: no limit.
  Seconds progress_timeout{0};
  // A caller that waits for an operation inside the server moves its data itself, which is fastest.
  // False where the caller is limited to a share of a core: then other threads move it.
  bool caller_moves_data = true;
  // TCP connections from a rank to another, over which large messages are striped, and as many
  // back. Where routers reveal the path of a port (internal/transport/path_discovery.h), they
  // spread over equal-cost links. 1 to kConnectionsMax; fewer among more than 16 ranks, so that a
  // rank holds about 128 of them: with 8 each, the rendezvous of 64 ranks took 1.8 s. With RDMA:
  // queue pairs of a pair of ranks, at most 256, from UDP ports that lie apart.
  int connections = 8;
  SourcePorts source_ports;  // from a plan (fabric/port_plan.h); null: as above
  Rdma rdma = Rdma::kAutomatic;
  // How collectives are carried out. These settings hold for every call that they fit; a cost model
  // and, over time, measurements (tuning/) choose the others. The same on all ranks.
  Setting forced;
  Measure measure = Measure::kAll;  // what trials may measure; with less, results keep their bits
  std::string tuning;               // text of an earlier run's tuning file; "": none
  // Elements are reduced by one tree over the ranks 0..n-1 (reduce_kernels.h), so a result depends
  // on the inputs and their ranks alone: not on the size of the message, its parts, or where the
  // ranks are. The same on all ranks. comm/README.md has the costs.
  bool deterministic = false;
  // With `deterministic`: sums and averages of f32, f16 and bf16 are added up in f64, in rank
  // order, and rounded once.
  bool sums_in_f64 = false;
  std::vector<std::string> rank_names;  // for messages: "rank 3 (s1/1)"; empty = "rank 3"
  // Not secret: `regatta coll inspect` finds the job by it; empty: the value of REGATTA_JOB_NAME.
  std::string job_name;
  // Other processes can read what the communicators of the rank do (internal/watch/layout.h), and
  // the rank names within 2 s the rank that a stalled operation waits for. False only to measure
  // the costs of that.
  bool watch = true;
  // The folder for the last operations of the rank when its world fails (docs/formats/flight.md);
  // empty: that of REGATTA_FLIGHT_DIR, else none.
  std::string flight_dir;
};

// Bytes that this rank sent to each rank of the world so far; messages only, without headers.
struct Traffic {
  std::vector<long long> network_bytes;  // by world rank
  std::vector<long long> shared_bytes;   // through shared memory
};

class Communicator {
 public:
  // Joins the ranks [0, world_size): returns when every rank has called it, or fails within
  // options.peer_timeout + 10 s after the exchange naming the missing ranks, within some 2 s when
  // the process of one ended. One progress thread ("regatta-coll") serves this communicator and all
  // that split() makes of it. It starts in the control group of the calling thread, so call this
  // before joining a limited one. Addresses are numeric; kInvalidInput for wrong arguments.
  static Result<Communicator> connect(Rank rank, int world_size, const Exchange& exchange,
                                      const CommunicatorOptions& options);
  // The last one of a world waits up to the peer timeout for operations under way, sends what is
  // queued, and takes leave of the other ranks.
  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;

  Rank rank() const;
  int world_size() const;

  // The communicator of the ranks that gave the same colour, ordered by rank of this one.
  // Collective. color < 0: the caller is in none and gets a communicator of world_size 0.
  Result<Communicator> split(int color);

  // After any error of a communicator that connect(), shrink() or grow() returned: a new one of the
  // remaining ranks, in their order, numbered without gaps. The ranks agree on the remaining ones
  // (internal/engine/membership_consensus.h), although more may die meanwhile, and make new
  // connections. Collective: a rank that does not call it within peer_timeout + 10 s of the first
  // one is left out, as is one that was silent for the peer timeout; its own call fails with
  // kUnavailable. Called before any error it ends the operations of all ranks with one. This
  // communicator and those that split() made of it stay failed and may be destroyed at any time.
  // Inputs that are not outputs too keep their values; outputs are undefined, and those in memory
  // of allocate() may change until shrink() has returned. Later only a rank that was stopped and
  // left out can change them, so allocate new memory from the new communicator. Some ranks may have
  // ended one collective more than others: before repeating one, agree on where to continue by an
  // all_reduce of kMin over a counter of your own.
  Result<Communicator> shrink();

  // A larger world: ranks [0, world_size()) are those of this communicator, newcomers get the
  // others and call connect(rank, world_size, ...) with an exchange that serves both and the same
  // job token. Collective; returns when every rank has called it, or fails as connect() does. Only
  // a communicator that connect(), shrink() or grow() returned can grow; it works on, also after an
  // error of the newcomers, until it is destroyed.
  Result<Communicator> grow(int world_size, const Exchange& exchange);

  // Out of place when in != out, in place when equal; counts are elements.
  // in, out: count elements on every rank.
  Handle all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op);
  // in: count elements, out: count * world_size, rank-major; `in` may lie anywhere on `out`.
  Handle all_gather(const void* in, void* out, std::size_t count, DataType type);
  // in: count * world_size elements, out: count: the rank-th part of the reduction.
  Handle reduce_scatter(const void* in, void* out, std::size_t count, DataType type, ReduceOp op);
  // in, out: count * world_size elements, rank-major: part k goes to rank k, whose part comes here.
  Handle all_to_all(const void* in, void* out, std::size_t count, DataType type);
  // Parts of any length, 0 too; the buffers do not overlap. A part must have the same length at its
  // sender and its receiver (kInvalidInput on both, with the ranks and the lengths).
  Handle all_to_all_v(const void* in, const Parts& give, void* out, const Parts& take,
                      DataType type);
  // in: parts.counts[rank] elements, out: the parts of all ranks. The counts are the same on all.
  Handle all_gather_v(const void* in, void* out, const Parts& parts, DataType type);
  // in: the parts for all ranks, out: the reduction of this rank's. The counts are the same on all.
  Handle reduce_scatter_v(const void* in, const Parts& parts, void* out, DataType type,
                          ReduceOp op);
  // data: count elements, read at the root, written elsewhere.
  Handle broadcast(void* data, std::size_t count, DataType type, Rank root);
  // Where only the root receives, `out` is not used elsewhere; where only the root sends, `in` is
  // not.
  // in: count elements, out: count at the root.
  Handle reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                Rank root);
  // in: count elements, out: count * world_size at the root.
  Handle gather(const void* in, void* out, std::size_t count, DataType type, Rank root);
  // in: count * world_size elements at the root, out: count.
  Handle scatter(const void* in, void* out, std::size_t count, DataType type, Rank root);
  // The same count and type at both ends; in order per pair of ranks.
  Handle send(const void* data, std::size_t count, DataType type, Rank to);
  Handle recv(void* data, std::size_t count, DataType type, Rank from);
  Handle barrier();

  // Zeroed memory, aligned to a page, that all ranks of the server can access: collectives inside
  // the server copy nothing where every buffer of the call comes from here. The last copy of the
  // pointer frees it. Ordinary memory where no other rank is on the server. kExhausted: none is
  // left.
  Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes);

 private:
  struct Impl;
  friend class ScheduleRun;  // communicator_impl.h
  friend std::vector<TuningChoice> tuning_choices(const Communicator& communicator);
  friend bool is_tuned(const Communicator& communicator);
  friend Traffic traffic_of(const Communicator& communicator);
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A communicator of the same ranks with an order of calls of its own. Collective.
Result<Communicator> duplicate(Communicator& communicator);

// Calls that begin together: those of this thread inside `calls`, on any communicators, begin when
// it returns, with one wake-up; collectives inside a server begin at once. The handle ends when all
// of them did, with their first error. In a group, ranks may call sends, receives, and collectives
// of distinct communicators in any order. Nothing waits inside: connect(), split(), duplicate(),
// shrink() and grow() fail there with kInvalidInput. A group in a group is part of it, and its
// handle is empty.
Handle group_calls(const std::function<void()>& calls);

// A send and a receive as a group: ranks that exchange do not wait for each other.
Handle send_recv(Communicator& communicator, const Outgoing& out, const Incoming& in,
                 DataType type);

// How each kind of call is carried out: the settings that were considered, predicted and measured.
// format_tuning() makes a file of it.
std::vector<TuningChoice> tuning_choices(const Communicator& communicator);
// No trial is under way for the kind of the last collective; the same on all ranks.
bool is_tuned(const Communicator& communicator);

Traffic traffic_of(const Communicator& communicator);

}  // namespace regatta::comm
