// The operations of communicator.h, but those with varying parts.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/model/collective/algorithms.h"
#include "regatta/model/collective/data_type.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/communicator_impl.h"
#include "regatta/runtime/comm/internal/engine/handle_state.h"
#include "regatta/runtime/comm/internal/group_scope.h"

namespace regatta::comm {
namespace {

// The handle of a call that began before the group of calls that it belongs to.
Handle begun(std::shared_ptr<Handle::State> state) {
  if (GroupScope* scope = GroupScope::current(); scope != nullptr) scope->add(state);
  return Handle(std::move(state));
}

// Bytes that this rank sends to `peer`, on average.
std::size_t bytes_to(const Call& call, const GroupPosition& self, int peer) {
  if (call.parts != nullptr) return at(call.parts->give, peer).bytes;
  const bool is_root = self.rank == call.root;
  switch (call.kind) {
    case CallKind::kBarrier:
      return 0;
    case CallKind::kAllReduce:
      return 2 * call.bytes / static_cast<std::size_t>(self.world_size);
    case CallKind::kReduce:
      return call.bytes / static_cast<std::size_t>(self.world_size);
    case CallKind::kBroadcast:
    case CallKind::kScatter:
      return is_root ? call.bytes : 0;
    case CallKind::kGather:
      return is_root ? 0 : call.bytes / static_cast<std::size_t>(self.world_size - 1);
    case CallKind::kReduceScatter:
    case CallKind::kAllGather:
    case CallKind::kAllToAll:
      return call.bytes;
    case CallKind::kAllToAllV:
    case CallKind::kAllGatherV:
    case CallKind::kReduceScatterV:
      break;  // they have parts
  }
  return 0;
}

}  // namespace

Handle Communicator::Impl::failed(Code code, std::string message) {
  auto state = std::make_shared<Handle::State>();
  state->finish(Error{code, std::move(message)}, os::monotonic_now());
  return begun(std::move(state));
}

Handle Communicator::Impl::collective(CallKind kind, const Arguments& arguments, ReduceOp op,
                                      Rank root) {
  return collective({.kind = kind,
                     .reduction = reduction(arguments.type, op),
                     .root = root.value,
                     .in = bytes_of(arguments.in),
                     .out = bytes_of(arguments.out),
                     .bytes = arguments.count * size_of(arguments.type)});
}

Handle Communicator::Impl::collective(const Call& call) {
  if (!has_rank(call.root))
    return failed(Code::kInvalidInput, validate(name_call(encode_call(call), 0), Rank{call.root}));
  if (group->log) group->log->submit();
  if (shm != nullptr) {
    for (int peer = 0; peer < group_position().world_size; ++peer)
      if (peer != group->rank)
        world->traffic().add_shared(at(group->members, peer),
                                    bytes_to(call, group_position(), peer));
    return begun(shm->submit(call));
  }
  auto operation = make(encode_call(call), call.bytes);
  operation->number = collectives++;
  // Only calls that are the same on all ranks are tuned.
  if (call.parts != nullptr)
    build_varying(operation->schedule, group_position(), call);
  else
    operation->call = call;
  return submit(std::move(operation));
}

std::string Communicator::Impl::validate(const std::string& call, Rank peer) const {
  if (has_rank(peer.value)) return {};
  if (world == nullptr)
    return call + ": this rank is not in the communicator (split with color < 0)";
  const int size = static_cast<int>(group->members.size());
  return call + ": rank " + std::to_string(peer.value) +
         " is not in the communicator: it has ranks 0 to " + std::to_string(size - 1);
}

std::unique_ptr<Operation> Communicator::Impl::make(std::uint64_t code, std::size_t bytes) const {
  auto operation = std::make_unique<Operation>();
  operation->group = group;
  operation->handle = std::make_shared<Handle::State>();
  operation->name = name_call(code, bytes);
  operation->code = code;
  operation->bytes = bytes;
  return operation;
}

Handle Communicator::Impl::submit(std::unique_ptr<Operation> operation) const {
  Handle handle(operation->handle);
  if (GroupScope* scope = GroupScope::current(); scope != nullptr) {
    scope->add(world, std::move(operation));
    return handle;
  }
  std::vector<std::unique_ptr<Operation>> alone;
  alone.push_back(std::move(operation));
  world->submit(std::move(alone));
  return handle;
}

Reduction Communicator::Impl::reduction(DataType type, ReduceOp op) const {
  const int ranks = group ? static_cast<int>(group->members.size()) : 1;
  return {type, op, ranks, options->deterministic, options->sums_in_f64};
}

Handle ScheduleRun::start(
    Communicator& communicator, const Call& call,
    const std::function<void(CollectiveSchedule&, const GroupPosition&)>& build) {
  Communicator::Impl& impl = *communicator.impl_;
  if (const auto why = impl.validate(call.name, Rank{0}); !why.empty())
    return Communicator::Impl::failed(Code::kInvalidInput, why);
  auto operation = impl.make(call.code, call.bytes);
  operation->name = call.name;
  // Inside a server the collectives of the shared segments have the log.
  operation->is_logged = impl.shm == nullptr;
  if (operation->log() != nullptr) operation->log()->submit();
  operation->number = impl.collectives++;
  operation->connections = impl.world_config->network.paths;
  build(operation->schedule, impl.group_position());
  return impl.submit(std::move(operation));
}

Handle Communicator::all_reduce(const void* in, void* out, std::size_t count, DataType type,
                                ReduceOp op) {
  return impl_->collective(CallKind::kAllReduce, {in, out, count, type}, op);
}

Handle Communicator::all_gather(const void* in, void* out, std::size_t count, DataType type) {
  return impl_->collective(CallKind::kAllGather, {in, out, count, type});
}

Handle Communicator::reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                    ReduceOp op) {
  return impl_->collective(CallKind::kReduceScatter, {in, out, count, type}, op);
}

Handle Communicator::all_to_all(const void* in, void* out, std::size_t count, DataType type) {
  return impl_->collective(CallKind::kAllToAll, {in, out, count, type});
}

Handle Communicator::broadcast(void* data, std::size_t count, DataType type, Rank root) {
  return impl_->collective(CallKind::kBroadcast, {nullptr, data, count, type}, ReduceOp::kSum,
                           root);
}

// NOLINTNEXTLINE(readability-function-size): the arguments of MPI_Reduce
Handle Communicator::reduce(const void* in, void* out, std::size_t count, DataType type,
                            ReduceOp op, Rank root) {
  return impl_->collective(CallKind::kReduce, {in, out, count, type}, op, root);
}

Handle Communicator::gather(const void* in, void* out, std::size_t count, DataType type,
                            Rank root) {
  return impl_->collective(CallKind::kGather, {in, out, count, type}, ReduceOp::kSum, root);
}

Handle Communicator::scatter(const void* in, void* out, std::size_t count, DataType type,
                             Rank root) {
  return impl_->collective(CallKind::kScatter, {in, out, count, type}, ReduceOp::kSum, root);
}

Handle Communicator::barrier() {
  return impl_->collective(CallKind::kBarrier, {});
}

Handle Communicator::send(const void* data, std::size_t count, DataType type, Rank to) {
  if (const auto why = impl_->validate("send", to); !why.empty())
    return Impl::failed(Code::kInvalidInput, why);
  const std::size_t bytes = count * size_of(type);
  auto operation = impl_->make(encode_transfer(true, at(impl_->group->members, to.value)), bytes);
  operation->is_collective = false;
  operation->number = impl_->sends[to.value]++;
  operation->schedule.add(
      {.kind = StepKind::kSend, .peer = to.value, .src = bytes_of(data), .bytes = bytes});
  return impl_->submit(std::move(operation));
}

Handle Communicator::recv(void* data, std::size_t count, DataType type, Rank from) {
  if (const auto why = impl_->validate("recv", from); !why.empty())
    return Impl::failed(Code::kInvalidInput, why);
  const std::size_t bytes = count * size_of(type);
  auto operation =
      impl_->make(encode_transfer(false, at(impl_->group->members, from.value)), bytes);
  operation->is_collective = false;
  operation->number = impl_->receives[from.value]++;
  operation->schedule.add(
      {.kind = StepKind::kReceive, .peer = from.value, .dst = bytes_of(data), .bytes = bytes});
  return impl_->submit(std::move(operation));
}

Handle send_recv(Communicator& communicator, const Outgoing& out, const Incoming& in,
                 DataType type) {
  return group_calls([&] {
    communicator.send(out.data, out.count, type, out.to);
    communicator.recv(in.data, in.count, type, in.from);
  });
}

Handle group_calls(const std::function<void()>& calls) {
  GroupScope::open();
  calls();
  return *GroupScope::close();
}

}  // namespace regatta::comm
