// train/internal/pipeline_step.h: one step of a stage of a 1F1B pipeline, with the transfers to its
// neighbours. Source: Narayanan et al., "Efficient large-scale language model training", SC'21,
// section 2.2.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/runtime/train/internal/rank_communicators.h"
#include "regatta/runtime/train/internal/stage.h"

namespace regatta::train {

// The transfers of one direction: from one neighbour to the other.
class StageTransfers {
 public:
  // `in`, `out`: null where the stage has no neighbour. A received tensor has `shape`; each tensor-
  // parallel rank sends 1/tp of the rows where tp divides them, and the receivers gather them.
  StageTransfers(comm::Communicator* in, comm::Communicator* out, TpGroup& tp,
                 std::vector<std::int64_t> shape, at::ScalarType type);

  // Expects `count` tensors and posts the first receive.
  void begin_step(int count);
  // The next tensor. The wait is kBubble until its first byte arrives, then kPpComm. Undefined
  // without `in`.
  Result<Tensor> receive(int micro_batch);
  // Starts to send; keeps the tensor until it is sent. Does nothing without `out`.
  void send(const Tensor& tensor);
  // Waits for all sends (kPpComm).
  Status finish_sends();

 private:
  struct Sending {
    Tensor tensor;
    comm::Handle handle;
  };

  // Posts the next expected receive when none is under way.
  void post_receive();
  void drop_sent();

  comm::Communicator* in_;
  comm::Communicator* out_;
  TpGroup& tp_;
  std::vector<std::int64_t> part_shape_;
  bool sliced_;
  at::ScalarType type_;
  int left_to_post_ = 0;
  Tensor incoming_;
  std::optional<comm::Handle> receiving_;
  std::vector<Sending> sending_;
};

using MicroBatchSource = std::function<MicroBatch(int index)>;

// Runs forward and backward of all micro-batches; the last sends may still be under way when it
// returns, see finish_sends(). `ready`: see Stage::backward; called with the last micro-batch's
// backward only. `check_stop`: called before each pass.
struct PipelineStep {
  std::vector<pipeline::Pass> passes;  // the stage's part of pipeline::pipeline_order()
  MicroBatchSource micro_batch;
  GradientsReady ready;
  std::function<Status()> check_stop;
};
Status run_step(Stage& stage, StageTransfers& activations, StageTransfers& gradients,
                const PipelineStep& plan);

}  // namespace regatta::train
