#include "integrations/torch/src/operations.h"

#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "integrations/torch/src/tensors.h"
#include "regatta/runtime/comm/c_api.h"

namespace regatta_torch {
namespace {

using c10d::OpType;

std::uint64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.nbytes());
}

PendingOperation make(const RankGroup& group, OpType type, const char* title, Tensors outputs) {
  PendingOperation operation;
  operation.type = type;
  operation.title = title;
  operation.comm = group.comm;
  operation.outputs = std::move(outputs);
  return operation;
}

// Whether its memory holds its elements as they are, one after the other.
bool is_dense(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

// Contiguous memory with the elements of the tensor: its own, or a copy. Alive with the operation.
at::Tensor dense(PendingOperation& operation, const at::Tensor& tensor) {
  at::Tensor memory = tensor.detach().resolve_conj().resolve_neg().contiguous();
  operation.buffers.push_back(memory);
  return memory;
}

at::Tensor fresh(PendingOperation& operation, const at::Tensor& like) {
  at::Tensor memory = at::empty_like(like.detach(), at::MemoryFormat::Contiguous);
  operation.buffers.push_back(memory);
  return memory;
}

void then(PendingOperation& operation, std::function<void()> next) {
  operation.place = [before = std::move(operation.place), after = std::move(next)] {
    if (before) before();
    after();
  };
}

// Memory for a result: the tensor's own, or some that is copied to it at the end.
at::Tensor room(PendingOperation& operation, const at::Tensor& tensor) {
  if (is_dense(tensor)) return dense(operation, tensor);
  at::Tensor memory = fresh(operation, tensor);
  then(operation, [memory, tensor] { tensor.copy_(memory); });
  return memory;
}

// The same, where the tensor is an input too.
at::Tensor in_place(PendingOperation& operation, const at::Tensor& tensor) {
  if (is_dense(tensor)) return dense(operation, tensor);
  at::Tensor memory = dense(operation, tensor);
  then(operation, [memory, tensor] { tensor.copy_(memory); });
  return memory;
}

at::Tensor joined(PendingOperation& operation, const Tensors& parts) {
  operation.buffers.push_back(join_parts(parts));
  return operation.buffers.back();
}

at::Tensor room_for(PendingOperation& operation, const Tensors& parts) {
  at::Tensor memory = room_for_parts(parts);
  operation.buffers.push_back(memory);
  then(operation, [memory, parts] { place_parts(memory, parts); });
  return memory;
}

void check_same_number(const char* call, const Tensors& outputs, const Tensors& inputs) {
  TORCH_CHECK(outputs.size() == inputs.size(), "regatta: ", call, ": ", outputs.size(),
              " outputs stand beside ", inputs.size(), " inputs: give as many");
}

// Before anything is begun: what has begun cannot be taken back.
void check_own_part(const RankGroup& group, const Tensors& outputs, const Tensors& inputs) {
  const at::Tensor& in = inputs[static_cast<std::size_t>(group.rank)];
  const at::Tensor& out = outputs[static_cast<std::size_t>(group.rank)];
  TORCH_CHECK(in.nbytes() == out.nbytes(), "regatta: alltoall: rank ", group.rank, " keeps ",
              in.nbytes(), " bytes and has room for ", out.nbytes(), ": make them equal");
}

// Begins call(i, comm, handle, error) for each i below `count`, together.
template <typename Call>
CommHandle begin_each(const RankGroup& group, std::size_t count, const Call& call) {
  if (count == 1)
    return group.comm->begin([&](auto* comm, auto** handle, auto* error) {
      return call(std::size_t{0}, comm, handle, error);
    });
  return group.comm->begin_together([&](auto* comm, auto* error) {
    regatta_coll_handle** const none = nullptr;
    for (std::size_t i = 0; i < count; ++i)
      if (const std::int32_t status = call(i, comm, none, error); status != REGATTA_COLL_OK)
        return status;
    return std::int32_t{REGATTA_COLL_OK};
  });
}

// in[k] goes to rank k, out[k] comes from it, each in memory of its own.
CommHandle exchange_all(const RankGroup& group, const Tensors& in, const Tensors& out) {
  return begin_each(group, in.size(),
                    [&](std::size_t peer, auto* comm, auto** handle, auto* error) {
                      const auto rank = static_cast<std::int32_t>(peer);
                      return regatta_coll_send_recv(comm, in[peer].data_ptr(), bytes_of(in[peer]),
                                                    rank, out[peer].data_ptr(), bytes_of(out[peer]),
                                                    rank, REGATTA_COLL_U8, handle, error);
                    });
}

std::vector<std::uint64_t> bytes_of(const Tensors& parts) {
  std::vector<std::uint64_t> bytes;
  for (const at::Tensor& part : parts)
    bytes.push_back(bytes_of(part));
  return bytes;
}

// The rows of each rank; `rows` empty: as many for each.
Tensors split_rows(const at::Tensor& tensor, const std::vector<std::int64_t>& rows, int ranks) {
  const std::int64_t all = tensor.dim() > 0 ? tensor.size(0) : 0;
  if (rows.empty()) {
    TORCH_CHECK(all % ranks == 0, "regatta: alltoall_base: ", all, " rows do not divide into ",
                ranks, " equal parts: give the sizes of the parts");
    return split_rows(
        tensor, std::vector<std::int64_t>(static_cast<std::size_t>(ranks), all / ranks), ranks);
  }
  std::int64_t sum = 0;
  for (const std::int64_t count : rows)
    sum += count;
  TORCH_CHECK(rows.size() == static_cast<std::size_t>(ranks) && sum == all,
              "regatta: alltoall_base: ", rows.size(), " parts with ", sum, " rows are not ", ranks,
              " with ", all, ": give one size for each rank, which add up to the rows");
  Tensors parts;
  std::int64_t at = 0;
  for (const std::int64_t count : rows) {
    parts.push_back(tensor.narrow(0, at, count));
    at += count;
  }
  return parts;
}

}  // namespace

PendingOperation broadcast(const RankGroup& group, const at::Tensor& tensor, std::int64_t root) {
  PendingOperation operation = make(group, OpType::BROADCAST, "regatta:broadcast", {tensor});
  const at::Tensor data = in_place(operation, tensor);
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_broadcast(comm, data.data_ptr(), bytes_of(data), REGATTA_COLL_U8,
                                  static_cast<std::int32_t>(root), handle, error);
  }));
  return operation;
}

PendingOperation all_reduce(const RankGroup& group, const Tensors& tensors,
                            const c10d::ReduceOp& op) {
  PendingOperation operation = make(group, OpType::ALLREDUCE, "regatta:all_reduce", tensors);
  std::vector<ElementReduction> reductions;
  for (const at::Tensor& tensor : tensors) {
    check_tensor("allreduce", tensor);
    reductions.push_back(reduction_of("allreduce", tensor, op));
  }
  Tensors data;
  for (const at::Tensor& tensor : tensors)
    data.push_back(in_place(operation, tensor));
  operation.handles.push_back(
      begin_each(group, data.size(), [&](std::size_t i, auto* comm, auto** handle, auto* error) {
        const ElementReduction& reduction = reductions[i];
        return regatta_coll_all_reduce(comm, data[i].data_ptr(), data[i].data_ptr(),
                                       reduction.count, reduction.type, reduction.op, handle,
                                       error);
      }));
  return operation;
}

PendingOperation reduce(const RankGroup& group, const at::Tensor& tensor, const c10d::ReduceOp& op,
                        std::int64_t root) {
  const ElementReduction reduction = reduction_of("reduce", tensor, op);
  PendingOperation operation = make(group, OpType::REDUCE, "regatta:reduce", {tensor});
  const at::Tensor data =
      group.is_root(root) ? in_place(operation, tensor) : dense(operation, tensor);
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_reduce(comm, data.data_ptr(), data.data_ptr(), reduction.count,
                               reduction.type, reduction.op, static_cast<std::int32_t>(root),
                               handle, error);
  }));
  return operation;
}

PendingOperation all_gather(const RankGroup& group, const Tensors& outputs,
                            const at::Tensor& input) {
  check_parts("allgather", outputs, group.size, input);
  PendingOperation operation = make(group, OpType::ALLGATHER, "regatta:all_gather", outputs);
  const at::Tensor in = dense(operation, input);
  const at::Tensor out = room_for(operation, outputs);
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_all_gather(comm, in.data_ptr(), out.data_ptr(), bytes_of(in),
                                   REGATTA_COLL_U8, handle, error);
  }));
  return operation;
}

PendingOperation all_gather_whole(const RankGroup& group, const Tensors& outputs,
                                  const Tensors& inputs) {
  check_same_number("_allgather_base", outputs, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_whole("_allgather_base", outputs[i], inputs[i], group.size);
  PendingOperation operation = make(group, OpType::_ALLGATHER_BASE, "regatta:all_gather", outputs);
  Tensors in;
  Tensors out;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    in.push_back(dense(operation, inputs[i]));
    out.push_back(room(operation, outputs[i]));
  }
  operation.handles.push_back(
      begin_each(group, in.size(), [&](std::size_t i, auto* comm, auto** handle, auto* error) {
        return regatta_coll_all_gather(comm, in[i].data_ptr(), out[i].data_ptr(), bytes_of(in[i]),
                                       REGATTA_COLL_U8, handle, error);
      }));
  return operation;
}

PendingOperation gather(const RankGroup& group, const Tensors& outputs, const at::Tensor& input,
                        std::int64_t root) {
  PendingOperation operation = make(group, OpType::GATHER, "regatta:gather", outputs);
  const at::Tensor in = dense(operation, input);
  at::Tensor out;
  if (group.is_root(root)) {
    check_parts("gather", outputs, group.size, input);
    out = room_for(operation, outputs);
  }
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_gather(comm, in.data_ptr(), out.defined() ? out.data_ptr() : nullptr,
                               bytes_of(in), REGATTA_COLL_U8, static_cast<std::int32_t>(root),
                               handle, error);
  }));
  return operation;
}

PendingOperation scatter(const RankGroup& group, const at::Tensor& output, const Tensors& inputs,
                         std::int64_t root) {
  PendingOperation operation = make(group, OpType::SCATTER, "regatta:scatter", {output});
  at::Tensor in;
  if (group.is_root(root)) {
    check_parts("scatter", inputs, group.size, output);
    in = joined(operation, inputs);
  }
  const at::Tensor out = room(operation, output);
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_scatter(comm, in.defined() ? in.data_ptr() : nullptr, out.data_ptr(),
                                bytes_of(out), REGATTA_COLL_U8, static_cast<std::int32_t>(root),
                                handle, error);
  }));
  return operation;
}

PendingOperation reduce_scatter(const RankGroup& group, const at::Tensor& output,
                                const Tensors& inputs, const c10d::ReduceOp& op) {
  check_parts("reduce_scatter", inputs, group.size, output);
  const ElementReduction reduction = reduction_of("reduce_scatter", output, op);
  PendingOperation operation =
      make(group, OpType::REDUCE_SCATTER, "regatta:reduce_scatter", {output});
  const at::Tensor in = joined(operation, inputs);
  const at::Tensor out = room(operation, output);
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_reduce_scatter(comm, in.data_ptr(), out.data_ptr(), reduction.count,
                                       reduction.type, reduction.op, handle, error);
  }));
  return operation;
}

PendingOperation reduce_scatter_whole(const RankGroup& group, const Tensors& outputs,
                                      const Tensors& inputs, const c10d::ReduceOp& op) {
  check_same_number("_reduce_scatter_base", outputs, inputs);
  std::vector<ElementReduction> reductions;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    check_whole("_reduce_scatter_base", inputs[i], outputs[i], group.size);
    reductions.push_back(reduction_of("_reduce_scatter_base", outputs[i], op));
  }
  PendingOperation operation =
      make(group, OpType::_REDUCE_SCATTER_BASE, "regatta:reduce_scatter", outputs);
  Tensors in;
  Tensors out;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    in.push_back(dense(operation, inputs[i]));
    out.push_back(room(operation, outputs[i]));
  }
  operation.handles.push_back(
      begin_each(group, in.size(), [&](std::size_t i, auto* comm, auto** handle, auto* error) {
        const ElementReduction& reduction = reductions[i];
        return regatta_coll_reduce_scatter(comm, in[i].data_ptr(), out[i].data_ptr(),
                                           reduction.count, reduction.type, reduction.op, handle,
                                           error);
      }));
  return operation;
}

PendingOperation all_to_all(const RankGroup& group, const Tensors& outputs, const Tensors& inputs) {
  const auto ranks = static_cast<std::size_t>(group.size);
  TORCH_CHECK(inputs.size() == ranks && outputs.size() == ranks, "regatta: alltoall takes ", ranks,
              " inputs and outputs, one of each rank, not ", inputs.size(), " and ",
              outputs.size());
  PendingOperation operation = make(group, OpType::ALLTOALL, "regatta:all_to_all", outputs);
  for (std::size_t i = 0; i < ranks; ++i) {
    check_tensor("alltoall", inputs[i]);
    check_tensor("alltoall", outputs[i]);
  }
  check_own_part(group, outputs, inputs);
  Tensors in;
  Tensors out;
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    in.push_back(dense(operation, inputs[peer]));
    out.push_back(room(operation, outputs[peer]));
  }
  operation.handles.push_back(exchange_all(group, in, out));
  return operation;
}

PendingOperation all_to_all_rows(const RankGroup& group, const at::Tensor& output,
                                 const at::Tensor& input,
                                 const std::vector<std::int64_t>& output_rows,
                                 const std::vector<std::int64_t>& input_rows) {
  check_tensor("alltoall_base", output);
  check_tensor("alltoall_base", input);
  TORCH_CHECK(output.scalar_type() == input.scalar_type(),
              "regatta: alltoall_base: the tensors have ", output.scalar_type(), " and ",
              input.scalar_type(), " elements: make them alike");
  PendingOperation operation = make(group, OpType::ALLTOALL_BASE, "regatta:all_to_all", {output});
  const at::Tensor in = dense(operation, input);
  const at::Tensor out = room(operation, output);
  const Tensors from = split_rows(in, input_rows, group.size);
  const Tensors to = split_rows(out, output_rows, group.size);
  if (!output_rows.empty() || !input_rows.empty()) {
    check_own_part(group, to, from);
    const std::vector<std::uint64_t> given = bytes_of(from);
    const std::vector<std::uint64_t> taken = bytes_of(to);
    operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
      return regatta_coll_all_to_all_v(comm, in.data_ptr(), given.data(), nullptr, out.data_ptr(),
                                       taken.data(), nullptr, REGATTA_COLL_U8, handle, error);
    }));
    return operation;
  }
  TORCH_CHECK(in.nbytes() == out.nbytes(),
              "regatta: alltoall_base: equal parts need tensors of "
              "one size, not of ",
              in.nbytes(), " and ", out.nbytes(), " bytes");
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_all_to_all(comm, in.data_ptr(), out.data_ptr(), bytes_of(from[0]),
                                   REGATTA_COLL_U8, handle, error);
  }));
  return operation;
}

PendingOperation send(const RankGroup& group, const at::Tensor& tensor, int to) {
  PendingOperation operation = make(group, OpType::SEND, "regatta:send", {tensor});
  operation.is_between_two = true;
  const at::Tensor data = dense(operation, tensor);
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_send(comm, data.data_ptr(), bytes_of(data), REGATTA_COLL_U8, to, handle,
                             error);
  }));
  return operation;
}

PendingOperation recv(const RankGroup& group, const at::Tensor& tensor, int from) {
  PendingOperation operation = make(group, OpType::RECV, "regatta:recv", {tensor});
  operation.is_between_two = true;
  const at::Tensor data = room(operation, tensor);
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_recv(comm, data.data_ptr(), bytes_of(data), REGATTA_COLL_U8, from, handle,
                             error);
  }));
  return operation;
}

PendingOperation barrier(const RankGroup& group) {
  PendingOperation operation = make(group, OpType::BARRIER, "regatta:barrier", {});
  operation.handles.push_back(group.comm->begin([&](auto* comm, auto** handle, auto* error) {
    return regatta_coll_barrier(comm, handle, error);
  }));
  return operation;
}

}  // namespace regatta_torch
