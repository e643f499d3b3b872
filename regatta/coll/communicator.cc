#include "regatta/coll/communicator.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/coll/algorithm/choose.h"
#include "regatta/coll/call.h"
#include "regatta/coll/engine/handle_state.h"
#include "regatta/coll/engine/operation.h"
#include "regatta/coll/engine/world.h"
#include "regatta/coll/transport/bootstrap.h"
#include "regatta/core/units_text.h"
#include "regatta/os/clock.h"

namespace regatta::coll {
namespace {

constexpr std::uint64_t kWorldGroup = 1;

// The name of a child communicator: the same on all its ranks without a word between them.
std::uint64_t child_id(std::uint64_t parent, std::uint32_t split, int color) {
  std::uint64_t x = parent * 0x9e3779b97f4a7c15ULL + split;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL + static_cast<std::uint32_t>(color);
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

Handle failed(Code code, std::string message) {
  auto state = std::make_shared<Handle::State>();
  state->finish(Error{code, std::move(message)}, os::monotonic_now());
  return Handle(std::move(state));
}

std::string name_of_transfer(const char* name, std::size_t bytes) {
  return std::string(name) + " of " + format_bytes(Bytes{static_cast<long long>(bytes)});
}

const std::byte* bytes_of(const void* data) {
  return static_cast<const std::byte*>(data);
}
std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}

}  // namespace

struct Communicator::Impl {
  std::shared_ptr<World> world;  // null: the caller of split() took no part
  std::shared_ptr<Group> group;
  std::uint32_t collectives = 0;  // calls so far
  std::uint32_t splits = 0;
  std::map<int, std::uint32_t> sends;     // by rank
  std::map<int, std::uint32_t> receives;  // by rank

  Place place() const { return {group->rank, static_cast<int>(group->members.size())}; }

  std::unique_ptr<Operation> make(std::string name) const {
    auto operation = std::make_unique<Operation>();
    operation->group = group;
    operation->handle = std::make_shared<Handle::State>();
    operation->name = std::move(name);
    return operation;
  }

  Reduction reduction(DataType type, ReduceOp op = ReduceOp::kSum) const {
    return {type, op, group ? static_cast<int>(group->members.size()) : 1};
  }

  Handle collective(const Call& call) {
    if (!has_rank(call.root))
      return failed(Code::kInvalidInput,
                    objection(name_call(encode_call(call), 0), Rank{call.root}));
    auto operation = make(name_call(encode_call(call), call.bytes));
    operation->number = collectives++;
    build_schedule(operation->schedule, place(), call);
    return submit(std::move(operation));
  }

  Handle submit(std::unique_ptr<Operation> operation) const {
    Handle handle(operation->handle);
    world->submit(std::move(operation));
    return handle;
  }

  bool has_rank(int rank) const {
    return world != nullptr && rank >= 0 && rank < static_cast<int>(group->members.size());
  }

  // The error of a call with these arguments, or "".
  std::string objection(const std::string& call, Rank peer) const {
    if (has_rank(peer.value)) return {};
    if (world == nullptr)
      return call + ": this rank is not in the communicator (split with color < 0)";
    const int size = static_cast<int>(group->members.size());
    return call + ": rank " + std::to_string(peer.value) +
           " is not in the communicator: it has ranks 0 to " + std::to_string(size - 1);
  }
};

bool Handle::done() const {
  return state_ == nullptr || state_->done.load(std::memory_order_acquire);
}

Status Handle::wait() {
  if (state_ == nullptr) return {};
  state_->done.wait(false, std::memory_order_acquire);
  if (state_->error) return *state_->error;
  return {};
}

Seconds Handle::started_at() const {
  return {state_ == nullptr ? 0 : state_->started_s.load()};
}

Seconds Handle::ended_at() const {
  return {state_ == nullptr ? 0 : state_->ended_s.load()};
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;

Result<Communicator> Communicator::connect(Rank rank, int world_size, const Exchange& exchange,
                                           const Options& options) {
  if (world_size < 1 || rank.value < 0 || rank.value >= world_size)
    return Error{Code::kInvalidInput, "connect: rank " + std::to_string(rank.value) +
                                          " is not in a world of " + std::to_string(world_size) +
                                          " ranks"};
  if (options.peer_timeout.value <= 0 || options.progress_timeout.value < 0)
    return Error{Code::kInvalidInput,
                 "connect: the peer timeout must be positive and the "
                 "progress timeout not negative"};
  REGATTA_TRY(meeting, meet(rank.value, world_size, exchange, options));
  auto impl = std::make_unique<Impl>();
  impl->group = std::make_shared<Group>();
  impl->group->id = kWorldGroup;
  impl->group->rank = rank.value;
  for (int member = 0; member < world_size; ++member)
    impl->group->members.push_back(member);
  REGATTA_TRY(world, World::start({.rank = rank.value,
                                   .channels = std::move(meeting.channels),
                                   .names = std::move(meeting.names),
                                   .peer_timeout = options.peer_timeout,
                                   .progress_timeout = options.progress_timeout}));
  impl->world = std::move(world);
  return Communicator(std::move(impl));
}

Rank Communicator::rank() const {
  return Rank{impl_->group ? impl_->group->rank : -1};
}

int Communicator::world_size() const {
  return impl_->group ? static_cast<int>(impl_->group->members.size()) : 0;
}

Result<Communicator> Communicator::split(int color) {
  if (impl_->world == nullptr)
    return Error{Code::kInvalidInput, "split: this rank is not in the communicator"};
  const std::vector<int>& members = impl_->group->members;
  std::vector<int> colors(members.size());
  REGATTA_TRY_DO(all_gather(&color, colors.data(), 1, DataType::kI32).wait());
  auto impl = std::make_unique<Impl>();
  const std::uint32_t split = impl_->splits++;
  if (color < 0) return Communicator(std::move(impl));
  impl->world = impl_->world;
  impl->group = std::make_shared<Group>();
  impl->group->id = child_id(impl_->group->id, split, color);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (colors[i] != color) continue;
    if (static_cast<int>(i) == impl_->group->rank)
      impl->group->rank = static_cast<int>(impl->group->members.size());
    impl->group->members.push_back(members[i]);
  }
  return Communicator(std::move(impl));
}

Handle Communicator::all_reduce(const void* in, void* out, std::size_t count, DataType type,
                                ReduceOp op) {
  return impl_->collective({.kind = CallKind::kAllReduce,
                            .reduction = impl_->reduction(type, op),
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .bytes = count * size_of(type)});
}

Handle Communicator::all_gather(const void* in, void* out, std::size_t count, DataType type) {
  return impl_->collective({.kind = CallKind::kAllGather,
                            .reduction = impl_->reduction(type),
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .bytes = count * size_of(type)});
}

Handle Communicator::reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                    ReduceOp op) {
  return impl_->collective({.kind = CallKind::kReduceScatter,
                            .reduction = impl_->reduction(type, op),
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .bytes = count * size_of(type)});
}

Handle Communicator::all_to_all(const void* in, void* out, std::size_t count, DataType type) {
  return impl_->collective({.kind = CallKind::kAllToAll,
                            .reduction = impl_->reduction(type),
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .bytes = count * size_of(type)});
}

Handle Communicator::broadcast(void* data, std::size_t count, DataType type, Rank root) {
  return impl_->collective({.kind = CallKind::kBroadcast,
                            .reduction = impl_->reduction(type),
                            .root = root.value,
                            .out = bytes_of(data),
                            .bytes = count * size_of(type)});
}

Handle Communicator::reduce(const void* in, void* out, std::size_t count, DataType type,
                            ReduceOp op, Rank root) {
  return impl_->collective({.kind = CallKind::kReduce,
                            .reduction = impl_->reduction(type, op),
                            .root = root.value,
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .bytes = count * size_of(type)});
}

Handle Communicator::gather(const void* in, void* out, std::size_t count, DataType type,
                            Rank root) {
  return impl_->collective({.kind = CallKind::kGather,
                            .reduction = impl_->reduction(type),
                            .root = root.value,
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .bytes = count * size_of(type)});
}

Handle Communicator::scatter(const void* in, void* out, std::size_t count, DataType type,
                             Rank root) {
  return impl_->collective({.kind = CallKind::kScatter,
                            .reduction = impl_->reduction(type),
                            .root = root.value,
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .bytes = count * size_of(type)});
}

Handle Communicator::barrier() {
  return impl_->collective(
      {.kind = CallKind::kBarrier, .reduction = impl_->reduction(DataType::kU8)});
}

Handle Communicator::send(const void* data, std::size_t count, DataType type, Rank to) {
  if (const auto why = impl_->objection("send", to); !why.empty())
    return failed(Code::kInvalidInput, why);
  const std::size_t bytes = count * size_of(type);
  auto operation = impl_->make(name_of_transfer("send", bytes));
  operation->is_collective = false;
  operation->number = impl_->sends[to.value]++;
  operation->schedule.add(
      {.kind = StepKind::kSend, .peer = to.value, .src = bytes_of(data), .bytes = bytes});
  return impl_->submit(std::move(operation));
}

Handle Communicator::recv(void* data, std::size_t count, DataType type, Rank from) {
  if (const auto why = impl_->objection("recv", from); !why.empty())
    return failed(Code::kInvalidInput, why);
  const std::size_t bytes = count * size_of(type);
  auto operation = impl_->make(name_of_transfer("recv", bytes));
  operation->is_collective = false;
  operation->number = impl_->receives[from.value]++;
  operation->schedule.add(
      {.kind = StepKind::kReceive, .peer = from.value, .dst = bytes_of(data), .bytes = bytes});
  return impl_->submit(std::move(operation));
}

Communicator::Traffic Communicator::traffic() const {
  return impl_->world ? impl_->world->traffic() : Traffic{};
}

}  // namespace regatta::coll
