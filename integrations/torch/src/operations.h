// torch/operations.h: the calls of torch as operations of a communicator, whatever torch's version.
// Each begins, and gives what Work waits for. Tensors that are not contiguous go through a copy.
#pragma once

#include <cstdint>
#include <vector>

// First: clang 14 in C++20 needs the whole type before other headers use it in vectors.
#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "integrations/torch/src/comm.h"
#include "integrations/torch/src/work.h"

namespace regatta_torch {

using Tensors = std::vector<at::Tensor>;

// The group as its operations see it.
struct RankGroup {
  std::shared_ptr<Comm> comm;
  int rank = 0;
  int size = 1;

  bool is_root(std::int64_t root) const { return root == rank; }
};

PendingOperation broadcast(const RankGroup& group, const at::Tensor& tensor, std::int64_t root);
// Reduces each tensor by itself.
PendingOperation all_reduce(const RankGroup& group, const Tensors& tensors,
                            const c10d::ReduceOp& op);
PendingOperation reduce(const RankGroup& group, const at::Tensor& tensor, const c10d::ReduceOp& op,
                        std::int64_t root);
PendingOperation all_gather(const RankGroup& group, const Tensors& outputs,
                            const at::Tensor& input);
// outputs[i]: as much as the inputs[i] of all ranks.
PendingOperation all_gather_whole(const RankGroup& group, const Tensors& outputs,
                                  const Tensors& inputs);
PendingOperation gather(const RankGroup& group, const Tensors& outputs, const at::Tensor& input,
                        std::int64_t root);
PendingOperation scatter(const RankGroup& group, const at::Tensor& output, const Tensors& inputs,
                         std::int64_t root);
PendingOperation reduce_scatter(const RankGroup& group, const at::Tensor& output,
                                const Tensors& inputs, const c10d::ReduceOp& op);
// inputs[i]: the parts of all ranks for outputs[i].
PendingOperation reduce_scatter_whole(const RankGroup& group, const Tensors& outputs,
                                      const Tensors& inputs, const c10d::ReduceOp& op);
// inputs[k] goes to rank k, outputs[k] comes from it; any counts, even none.
PendingOperation all_to_all(const RankGroup& group, const Tensors& outputs, const Tensors& inputs);
// The rows of `input` that go to each rank, and of `output` that come; empty: equal parts.
PendingOperation all_to_all_rows(const RankGroup& group, const at::Tensor& output,
                                 const at::Tensor& input,
                                 const std::vector<std::int64_t>& output_rows,
                                 const std::vector<std::int64_t>& input_rows);
PendingOperation send(const RankGroup& group, const at::Tensor& tensor, int to);
PendingOperation recv(const RankGroup& group, const at::Tensor& tensor, int from);
PendingOperation barrier(const RankGroup& group);

}  // namespace regatta_torch
