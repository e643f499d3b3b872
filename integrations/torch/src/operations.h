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
struct Group {
  std::shared_ptr<Comm> comm;
  int rank = 0;
  int size = 1;

  bool is_root(std::int64_t root) const { return root == rank; }
};

Operation broadcast(const Group& group, const at::Tensor& tensor, std::int64_t root);
// Of one tensor or of several, each reduced by itself.
Operation all_reduce(const Group& group, const Tensors& tensors, const c10d::ReduceOp& op);
Operation reduce(const Group& group, const at::Tensor& tensor, const c10d::ReduceOp& op,
                 std::int64_t root);
Operation all_gather(const Group& group, const Tensors& outputs, const at::Tensor& input);
// outputs[i]: as much as the inputs[i] of all ranks.
Operation all_gather_whole(const Group& group, const Tensors& outputs, const Tensors& inputs);
Operation gather(const Group& group, const Tensors& outputs, const at::Tensor& input,
                 std::int64_t root);
Operation scatter(const Group& group, const at::Tensor& output, const Tensors& inputs,
                  std::int64_t root);
Operation reduce_scatter(const Group& group, const at::Tensor& output, const Tensors& inputs,
                         const c10d::ReduceOp& op);
// inputs[i]: the parts of all ranks for outputs[i].
Operation reduce_scatter_whole(const Group& group, const Tensors& outputs, const Tensors& inputs,
                               const c10d::ReduceOp& op);
// inputs[k] goes to rank k, outputs[k] comes from it; any counts, even none.
Operation all_to_all(const Group& group, const Tensors& outputs, const Tensors& inputs);
// The rows of `input` that go to each rank, and of `output` that come; empty: equal parts.
Operation all_to_all_rows(const Group& group, const at::Tensor& output, const at::Tensor& input,
                          const std::vector<std::int64_t>& output_rows,
                          const std::vector<std::int64_t>& input_rows);
Operation send(const Group& group, const at::Tensor& tensor, int to);
Operation recv(const Group& group, const at::Tensor& tensor, int from);
Operation barrier(const Group& group);

}  // namespace regatta_torch
