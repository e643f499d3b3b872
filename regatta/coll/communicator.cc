#include "regatta/coll/communicator.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/coll/algorithm/choose.h"
#include "regatta/coll/algorithm/direct.h"
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

  std::unique_ptr<Operation> make(const char* name, std::size_t bytes) const {
    auto operation = std::make_unique<Operation>();
    operation->group = group;
    operation->handle = std::make_shared<Handle::State>();
    operation->name = name;
    if (bytes > 0) operation->name += " of " + format_bytes(Bytes{static_cast<long long>(bytes)});
    return operation;
  }

  Handle submit_collective(std::unique_ptr<Operation> operation) {
    operation->number = collectives++;
    return submit(std::move(operation));
  }

  Handle submit(std::unique_ptr<Operation> operation) const {
    Handle handle(operation->handle);
    world->submit(std::move(operation));
    return handle;
  }

  // The error of a call with these arguments, or "".
  std::string objection(const char* call, Rank peer) const {
    if (world == nullptr)
      return std::string(call) + ": this rank is not in the communicator (split with color < 0)";
    const int size = static_cast<int>(group->members.size());
    if (peer.value < 0 || peer.value >= size)
      return std::string(call) + ": rank " + std::to_string(peer.value) +
             " is not in the communicator: it has ranks 0 to " + std::to_string(size - 1);
    return {};
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
  if (const auto why = impl_->objection("all_reduce", Rank{0}); !why.empty())
    return failed(Code::kInvalidInput, why);
  const Buffers buffers{bytes_of(in), bytes_of(out), count, size_of(type)};
  auto operation = impl_->make("all_reduce", buffers.bytes());
  operation->schedule.reduction = {type, op, world_size()};
  build_all_reduce(operation->schedule, impl_->place(), buffers);
  return impl_->submit_collective(std::move(operation));
}

Handle Communicator::all_gather(const void* in, void* out, std::size_t count, DataType type) {
  if (const auto why = impl_->objection("all_gather", Rank{0}); !why.empty())
    return failed(Code::kInvalidInput, why);
  const Buffers buffers{bytes_of(in), bytes_of(out), count, size_of(type)};
  auto operation = impl_->make("all_gather", buffers.bytes());
  build_all_gather(operation->schedule, impl_->place(), buffers);
  return impl_->submit_collective(std::move(operation));
}

Handle Communicator::reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                    ReduceOp op) {
  if (const auto why = impl_->objection("reduce_scatter", Rank{0}); !why.empty())
    return failed(Code::kInvalidInput, why);
  const Buffers buffers{bytes_of(in), bytes_of(out), count, size_of(type)};
  auto operation = impl_->make("reduce_scatter", buffers.bytes());
  operation->schedule.reduction = {type, op, world_size()};
  build_reduce_scatter(operation->schedule, impl_->place(), buffers);
  return impl_->submit_collective(std::move(operation));
}

Handle Communicator::broadcast(void* data, std::size_t count, DataType type, Rank root) {
  if (const auto why = impl_->objection("broadcast", root); !why.empty())
    return failed(Code::kInvalidInput, why);
  const Buffers buffers{nullptr, bytes_of(data), count, size_of(type)};
  auto operation = impl_->make("broadcast", buffers.bytes());
  build_broadcast(operation->schedule, impl_->place(), buffers, root.value);
  return impl_->submit_collective(std::move(operation));
}

Handle Communicator::barrier() {
  if (const auto why = impl_->objection("barrier", Rank{0}); !why.empty())
    return failed(Code::kInvalidInput, why);
  auto operation = impl_->make("barrier", 0);
  dissemination_barrier(operation->schedule, impl_->place());
  return impl_->submit_collective(std::move(operation));
}

Handle Communicator::send(const void* data, std::size_t count, DataType type, Rank to) {
  if (const auto why = impl_->objection("send", to); !why.empty())
    return failed(Code::kInvalidInput, why);
  const std::size_t bytes = count * size_of(type);
  auto operation = impl_->make("send", bytes);
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
  auto operation = impl_->make("recv", bytes);
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
