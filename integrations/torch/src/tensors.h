// torch/tensors.h: tensors as the collectives take them: dense memory on the CPU, and its type.
#pragma once

#include <cstdint>
#include <vector>

// First: clang 14 in C++20 needs the whole type before other headers use it in vectors.
#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace regatta_torch {

// How a reduction treats the elements of a tensor: complex numbers are pairs, truth values are
// bytes.
struct ElementReduction {
  std::int32_t type = 0;  // REGATTA_COLL_F32 ...
  std::int32_t op = 0;    // REGATTA_COLL_SUM ...
  std::uint64_t count = 0;
};

// Throws where the collectives have no such reduction, naming `call` and the remedy.
ElementReduction reduction_of(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& op);

// Dense, on the CPU, or throws.
void check_tensor(const char* call, const at::Tensor& tensor);
// The one tensor of the list: there is one device per rank.
at::Tensor& only(const char* call, std::vector<at::Tensor>& tensors);
std::vector<at::Tensor>& only(const char* call, std::vector<std::vector<at::Tensor>>& lists);
// As many tensors as ranks, all of the type and count of `like`.
void check_parts(const char* call, const std::vector<at::Tensor>& parts, int ranks,
                 const at::Tensor& like);
// whole: as much as `ranks` times the part, of the same type.
void check_whole(const char* call, const at::Tensor& whole, const at::Tensor& part, int ranks);

// One after the other in fresh memory, or the memory where they lie in that order already.
at::Tensor join_parts(const std::vector<at::Tensor>& parts);
// Memory for what will come for the parts: the memory where they lie in order already, or fresh.
at::Tensor room_for_parts(const std::vector<at::Tensor>& parts);
// Copies to the parts what room_for_parts() received; nothing when it is their own memory.
void place_parts(const at::Tensor& room, const std::vector<at::Tensor>& parts);

}  // namespace regatta_torch
