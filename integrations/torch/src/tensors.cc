#include "integrations/torch/src/tensors.h"

#include <optional>
#include <string>

#include <ATen/ATen.h>

#include "regatta/runtime/comm/c_api.h"

namespace regatta_torch {
namespace {

std::optional<std::int32_t> type_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kComplexFloat:
      return REGATTA_COLL_F32;
    case at::kDouble:
    case at::kComplexDouble:
      return REGATTA_COLL_F64;
    case at::kHalf:
      return REGATTA_COLL_F16;
    case at::kBFloat16:
      return REGATTA_COLL_BF16;
    case at::kChar:
      return REGATTA_COLL_I8;
    case at::kByte:
    case at::kBool:
      return REGATTA_COLL_U8;
    case at::kInt:
      return REGATTA_COLL_I32;
    case at::kLong:
      return REGATTA_COLL_I64;
    default:
      return std::nullopt;
  }
}

std::optional<std::int32_t> op_of(c10d::ReduceOp::RedOpType op, bool is_truth) {
  switch (op) {
    case c10d::ReduceOp::SUM:  // of truth values: whether any is true
      return is_truth ? REGATTA_COLL_MAX : REGATTA_COLL_SUM;
    case c10d::ReduceOp::AVG:
      return is_truth ? std::nullopt : std::optional<std::int32_t>(REGATTA_COLL_AVERAGE);
    case c10d::ReduceOp::PRODUCT:
      return is_truth ? REGATTA_COLL_MIN : REGATTA_COLL_PRODUCT;
    case c10d::ReduceOp::MIN:
      return REGATTA_COLL_MIN;
    case c10d::ReduceOp::MAX:
      return REGATTA_COLL_MAX;
    case c10d::ReduceOp::BAND:
      return is_truth ? std::optional<std::int32_t>(REGATTA_COLL_MIN) : std::nullopt;
    case c10d::ReduceOp::BOR:
      return is_truth ? std::optional<std::int32_t>(REGATTA_COLL_MAX) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// Whether the parts lie one after the other in one storage.
bool lie_in_order(const std::vector<at::Tensor>& parts) {
  const at::Tensor& first = parts.front();
  std::int64_t offset = first.storage_offset();
  for (const at::Tensor& part : parts) {
    if (!part.is_contiguous() || part.storage_offset() != offset ||
        !part.storage().is_alias_of(first.storage()))
      return false;
    offset += part.numel();
  }
  return true;
}

std::int64_t count_of(const std::vector<at::Tensor>& parts) {
  std::int64_t count = 0;
  for (const at::Tensor& part : parts)
    count += part.numel();
  return count;
}

at::Tensor in_order(const std::vector<at::Tensor>& parts) {
  return parts.front().detach().as_strided({count_of(parts)}, {1});
}

// The name of a reduction that op_of() does not know.
std::string name_of(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::BAND:
      return "BAND";
    case c10d::ReduceOp::BOR:
      return "BOR";
    case c10d::ReduceOp::BXOR:
      return "BXOR";
    case c10d::ReduceOp::AVG:
      return "AVG";
    default:
      return "operation " + std::to_string(static_cast<int>(op));
  }
}

}  // namespace

ElementReduction reduction_of(const char* call, const at::Tensor& tensor,
                              const c10d::ReduceOp& op) {
  const auto type = type_of(tensor.scalar_type());
  TORCH_CHECK(type, "regatta: ", call, " does not reduce ", tensor.scalar_type(),
              ": convert the tensor to another type");
  const bool is_truth = tensor.scalar_type() == at::kBool;
  const auto kind = static_cast<c10d::ReduceOp::RedOpType>(op);
  const auto which = op_of(kind, is_truth);
  TORCH_CHECK(which, "regatta: ", call, " of ", tensor.scalar_type(),
              " knows sum, product, min, max and, but of bool, the average; not ", name_of(kind),
              ": reduce with one of these");
  TORCH_CHECK(!tensor.is_complex() || *which == REGATTA_COLL_SUM || *which == REGATTA_COLL_AVERAGE,
              "regatta: ", call, " of complex numbers knows sum and average only");
  const auto count = static_cast<std::uint64_t>(tensor.numel());
  return {*type, *which, tensor.is_complex() ? 2 * count : count};
}

void check_tensor(const char* call, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.layout() == at::kStrided, "regatta: ", call,
              ": the tensor is sparse; make it dense");
  TORCH_CHECK(tensor.device().is_cpu(), "regatta: ", call, ": the tensor is on ", tensor.device(),
              "; move it to the CPU");
}

at::Tensor& only(const char* call, std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == 1, "regatta: ", call, " takes one tensor, not ", tensors.size());
  check_tensor(call, tensors[0]);
  return tensors[0];
}

std::vector<at::Tensor>& only(const char* call, std::vector<std::vector<at::Tensor>>& lists) {
  TORCH_CHECK(lists.size() == 1, "regatta: ", call, " takes one list of tensors, not ",
              lists.size());
  return lists[0];
}

void check_parts(const char* call, const std::vector<at::Tensor>& parts, int ranks,
                 const at::Tensor& like) {
  TORCH_CHECK(parts.size() == static_cast<std::size_t>(ranks), "regatta: ", call, " takes ", ranks,
              " tensors, one of each rank, not ", parts.size());
  for (const at::Tensor& part : parts) {
    check_tensor(call, part);
    TORCH_CHECK(part.numel() == like.numel() && part.scalar_type() == like.scalar_type(),
                "regatta: ", call, ": a tensor of ", part.numel(), " ", part.scalar_type(),
                " elements stands beside one of ", like.numel(), " ", like.scalar_type(),
                ": make all alike");
  }
}

void check_whole(const char* call, const at::Tensor& whole, const at::Tensor& part, int ranks) {
  check_tensor(call, whole);
  check_tensor(call, part);
  TORCH_CHECK(whole.scalar_type() == part.scalar_type(), "regatta: ", call, ": the tensors have ",
              whole.scalar_type(), " and ", part.scalar_type(), " elements: make them alike");
  TORCH_CHECK(whole.numel() == part.numel() * ranks, "regatta: ", call, ": a tensor of ",
              whole.numel(), " elements is not ", ranks, " times one of ", part.numel());
}

at::Tensor join_parts(const std::vector<at::Tensor>& parts) {
  if (lie_in_order(parts)) return in_order(parts);
  at::Tensor room = at::empty({count_of(parts)}, parts.front().options().requires_grad(false));
  std::int64_t at = 0;
  for (const at::Tensor& part : parts) {
    room.narrow(0, at, part.numel()).view(part.sizes()).copy_(part.detach());
    at += part.numel();
  }
  return room;
}

at::Tensor room_for_parts(const std::vector<at::Tensor>& parts) {
  if (lie_in_order(parts)) return in_order(parts);
  return at::empty({count_of(parts)}, parts.front().options().requires_grad(false));
}

void place_parts(const at::Tensor& room, const std::vector<at::Tensor>& parts) {
  if (room.storage().is_alias_of(parts.front().storage())) return;
  std::int64_t at = 0;
  for (const at::Tensor& part : parts) {
    part.copy_(room.narrow(0, at, part.numel()).view(part.sizes()));
    at += part.numel();
  }
}

}  // namespace regatta_torch
