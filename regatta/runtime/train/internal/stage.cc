#include "regatta/runtime/train/internal/stage.h"

#include <utility>

#include "regatta/base/core/result.h"

namespace regatta::train {

using workload::Phase;

namespace {

void keep_input_only(BlockCache& cache) {
  BlockCache kept;
  kept.x = cache.x;
  cache = std::move(kept);
}

}  // namespace

Stage::Stage(const workload::Job& job, const workload::Strategy& strategy,
             workload::RankCoordinates at, const Parameters& parameters, TpGroup& tp)
    : context_{.tp = tp,
               .attention = {.seq = job.model.seq,
                             .batch = strategy.micro_batch,
                             .heads = job.model.heads / strategy.tp,
                             .head_dim = job.model.hidden / job.model.heads},
               .mask = causal_mask(job.model.seq, scalar_type(job.precision))},
      recompute_(strategy.recompute == workload::Recompute::kFull),
      gradient_scale_(1.0 / (static_cast<double>(job.global_batch) * job.model.seq)),
      total_(parameters.gradient.numel()) {
  if (at.pp == 0) embedding_ = make_embedding(parameters, at.tp);
  const workload::LayerRange range = workload::stage_layers(job.model, strategy, at.pp);
  blocks_.reserve(static_cast<std::size_t>(range.count));
  for (int layer = range.first; layer < range.first + range.count; ++layer)
    blocks_.push_back(make_block(parameters, layer));
  if (at.pp == strategy.pp - 1) {
    head_ = make_head(parameters, job.model.tied_embeddings, at.tp);
    const Parameter& last = parameters["norm.bias"];
    head_end_ = last.offset + last.count;
  }
}

std::vector<std::int64_t> Stage::boundary_shape() const {
  const AttentionDims& shape = context_.attention;
  return {shape.seq * shape.batch, shape.heads * shape.head_dim * context_.tp.size()};
}

Result<Tensor> Stage::forward(const MicroBatch& micro_batch, const Tensor& input) {
  TpGroup& tp = context_.tp;
  PhaseClock& clock = tp.clock();
  InFlight flight{.micro_batch = micro_batch, .blocks = {}, .head = {}};
  flight.blocks.resize(blocks_.size());
  clock.enter({Phase::kForward, micro_batch.index, -1});
  Tensor x = input;
  if (embedding_) x = embedding_forward(*embedding_, micro_batch.tokens, tp);
  REGATTA_TRY_DO(tp.status());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    clock.enter({Phase::kForward, micro_batch.index, blocks_[i].layer});
    BlockCache& cache = flight.blocks[i];
    x = block_forward(blocks_[i], x, context_, cache);
    REGATTA_TRY_DO(tp.status());
    if (recompute_) keep_input_only(cache);
  }
  if (head_) {
    clock.enter({Phase::kForward, micro_batch.index, -1});
    loss_sum_ += head_forward(*head_, x, micro_batch.targets, tp, flight.head);
    REGATTA_TRY_DO(tp.status());
    x.reset();
  }
  clock.enter({});
  in_flight_.push_back(std::move(flight));
  return x;
}

Result<Tensor> Stage::backward(const Tensor& doutput, const GradientsReady& ready) {
  REGATTA_CHECK(!in_flight_.empty());
  TpGroup& tp = context_.tp;
  PhaseClock& clock = tp.clock();
  InFlight flight = std::move(in_flight_.front());
  in_flight_.pop_front();
  const int index = flight.micro_batch.index;
  Tensor dy = doutput;
  if (head_) {
    clock.enter({Phase::kBackward, index, -1});
    dy = head_backward(*head_, gradient_scale_, tp, flight.head);
    REGATTA_TRY_DO(tp.status());
    ready(head_end_);
  }
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    BlockCache& cache = flight.blocks[i];
    if (recompute_) {
      clock.enter({Phase::kRecompute, index, blocks_[i].layer});
      block_recompute(blocks_[i], context_, cache);
    }
    clock.enter({Phase::kBackward, index, blocks_[i].layer});
    dy = block_backward(blocks_[i], dy, context_, cache, ready);
    REGATTA_TRY_DO(tp.status());
  }
  if (embedding_) {
    clock.enter({Phase::kBackward, index, -1});
    embedding_backward(*embedding_, dy, flight.micro_batch.tokens);
    ready(total_);
    dy.reset();
  }
  clock.enter({});
  return dy;
}

double Stage::take_loss_sum() {
  return std::exchange(loss_sum_, 0);
}

}  // namespace regatta::train
