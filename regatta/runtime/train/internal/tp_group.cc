#include "regatta/runtime/train/internal/tp_group.h"

#include <cstddef>

#include <ATen/ops/empty.h>

#include "regatta/base/core/result.h"
#include "regatta/gpu/device/device.h"

namespace regatta::train {

comm::DataType data_type(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return comm::DataType::kF32;
    case at::kDouble:
      return comm::DataType::kF64;
    case at::kBFloat16:
      return comm::DataType::kBf16;
    case at::kLong:
      return comm::DataType::kI64;
    default:
      check_failed("the tensor's element type can be sent", __FILE__, __LINE__);
  }
}

TpGroup::TpGroup(comm::Communicator* communicator, PhaseClock& clock)
    : communicator_(communicator), clock_(clock) {
  if (communicator == nullptr) return;
  size_ = communicator->world_size();
  rank_ = communicator->rank().value;
}

std::optional<comm::Handle> TpGroup::start_all_reduce(Tensor& tensor, comm::ReduceOp op) {
  if (size_ == 1 || !status_) return std::nullopt;
  REGATTA_CHECK(tensor.is_contiguous());
  device::begin_wait();  // the data leave when the device has made them
  void* data = tensor.data_ptr();
  return communicator_->all_reduce(data, data, static_cast<std::size_t>(tensor.numel()),
                                   data_type(tensor), op);
}

void TpGroup::wait(std::optional<comm::Handle>& handle) {
  if (!handle) return;
  Activity waiting = clock_.enter({.phase = workload::Phase::kTpComm});
  const Status done = handle->wait();
  if (!done && status_) status_ = done;
  handle.reset();
  clock_.enter(waiting);
}

void TpGroup::all_reduce(Tensor& tensor, comm::ReduceOp op) {
  auto handle = start_all_reduce(tensor, op);
  wait(handle);
}

Tensor TpGroup::all_gather(const Tensor& part) {
  if (size_ == 1 || !status_) return part;
  REGATTA_CHECK(part.is_contiguous());
  device::begin_wait();
  auto sizes = part.sizes().vec();
  sizes[0] *= size_;
  Tensor whole = at::empty(sizes, part.options());
  std::optional<comm::Handle> handle = communicator_->all_gather(
      part.data_ptr(), whole.data_ptr(), static_cast<std::size_t>(part.numel()), data_type(part));
  wait(handle);
  return whole;
}

}  // namespace regatta::train
