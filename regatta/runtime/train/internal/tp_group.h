// train/internal/tp_group.h: the collectives of a tensor-parallel group on tensors; the clock
// counts each wait. After a failure the operations do nothing and status() has the first error; the
// caller of the layers checks it after each one, so layers stay plain functions of tensors.
#pragma once

#include <optional>

#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/train/internal/phase_clock.h"
#include "regatta/runtime/train/internal/tensor.h"

namespace regatta::train {

class TpGroup {
 public:
  // `communicator`: of the group; null when the group is this rank alone. Both outlive this.
  TpGroup(comm::Communicator* communicator, PhaseClock& clock);

  int size() const { return size_; }
  int rank() const { return rank_; }
  PhaseClock& clock() const { return clock_; }
  const Status& status() const { return status_; }

  // In place; `tensor` is contiguous and stays untouched until wait() returned.
  std::optional<comm::Handle> start_all_reduce(Tensor& tensor, comm::ReduceOp op);
  // Counted as kTpComm.
  void wait(std::optional<comm::Handle>& handle);

  void all_reduce(Tensor& tensor, comm::ReduceOp op = comm::ReduceOp::kSum);
  // part: [n, ...] on each rank -> [n * size, ...], rank-major. Contiguous.
  Tensor all_gather(const Tensor& part);

 private:
  comm::Communicator* communicator_;
  PhaseClock& clock_;
  int size_ = 1;
  int rank_ = 0;
  Status status_;
};

}  // namespace regatta::train
