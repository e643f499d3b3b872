#include "regatta/runtime/train/internal/pipeline_step.h"

#include <utility>

#include <ATen/ops/empty.h>

#include "regatta/base/core/result.h"

namespace regatta::train {

using workload::Phase;

StageTransfers::StageTransfers(comm::Communicator* in, comm::Communicator* out, TpGroup& tp,
                               std::vector<std::int64_t> shape, at::ScalarType type)
    : in_(in),
      out_(out),
      tp_(tp),
      part_shape_(std::move(shape)),
      sliced_(part_shape_[0] % tp.size() == 0),
      type_(type) {
  if (sliced_) part_shape_[0] /= tp.size();
}

void StageTransfers::begin_step(int count) {
  left_to_post_ = in_ == nullptr ? 0 : count;
  post_receive();
}

void StageTransfers::post_receive() {
  if (left_to_post_ == 0 || receiving_) return;
  --left_to_post_;
  incoming_ = at::empty(part_shape_, type_);
  const Rank from{1 - in_->rank().value};
  receiving_ = in_->recv(incoming_.data_ptr(), static_cast<std::size_t>(incoming_.numel()),
                         data_type(incoming_), from);
}

Result<Tensor> StageTransfers::receive(int micro_batch) {
  if (in_ == nullptr) return Tensor();
  REGATTA_CHECK(receiving_.has_value());
  PhaseClock& clock = tp_.clock();
  clock.enter({Phase::kBubble, micro_batch, -1});
  const Status done = receiving_->wait();
  const Seconds first_byte = receiving_->started_at();
  const Seconds last_byte = receiving_->ended_at();
  receiving_.reset();
  if (!done) return done.error();
  const Activity transfer{Phase::kPpComm, micro_batch, -1};
  clock.enter_at(transfer, first_byte);
  clock.background(transfer, first_byte, last_byte);
  Tensor part = std::exchange(incoming_, Tensor());
  post_receive();
  clock.enter({});
  if (!sliced_) return part;
  Tensor whole = tp_.all_gather(part);
  REGATTA_TRY_DO(tp_.status());
  return whole;
}

void StageTransfers::send(const Tensor& tensor) {
  if (out_ == nullptr) return;
  drop_sent();
  Tensor part = tensor;
  if (sliced_) part = tensor.narrow(0, tp_.rank() * part_shape_[0], part_shape_[0]);
  REGATTA_CHECK(part.is_contiguous());
  const Rank to{1 - out_->rank().value};
  comm::Handle handle =
      out_->send(part.data_ptr(), static_cast<std::size_t>(part.numel()), data_type(part), to);
  sending_.push_back({std::move(part), std::move(handle)});
}

void StageTransfers::drop_sent() {
  std::erase_if(sending_, [](const Sending& sending) { return sending.handle.done(); });
}

Status StageTransfers::finish_sends() {
  if (sending_.empty()) return {};
  tp_.clock().enter({.phase = Phase::kPpComm});
  Status status;
  for (Sending& sending : sending_) {
    const Status done = sending.handle.wait();
    if (!done && status) status = done;
  }
  sending_.clear();
  tp_.clock().enter({});
  return status;
}

Status run_step(Stage& stage, StageTransfers& activations, StageTransfers& gradients,
                const PipelineStep& plan) {
  const int micro_batches = static_cast<int>(plan.passes.size()) / 2;
  const GradientsReady not_yet = [](std::int64_t) {};
  activations.begin_step(micro_batches);
  gradients.begin_step(micro_batches);
  for (const pipeline::Pass& pass : plan.passes) {
    REGATTA_TRY_DO(plan.check_stop());
    const int index = pass.micro_batch;
    if (pass.kind == pipeline::PassKind::kForward) {
      const MicroBatch micro_batch = plan.micro_batch(index);
      REGATTA_TRY(input, activations.receive(index));
      REGATTA_TRY(output, stage.forward(micro_batch, input));
      if (!stage.is_last()) activations.send(output);
    } else {
      REGATTA_TRY(doutput, gradients.receive(index));
      REGATTA_TRY(dinput,
                  stage.backward(doutput, index == micro_batches - 1 ? plan.ready : not_yet));
      if (!stage.is_first()) gradients.send(dinput);
    }
  }
  return {};
}

}  // namespace regatta::train
