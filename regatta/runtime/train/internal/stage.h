// train/internal/stage.h: the part of the model that one pipeline stage holds, run one micro-batch
// at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/job.h"
#include "regatta/runtime/train/internal/block.h"
#include "regatta/runtime/train/internal/embedding_and_head.h"

namespace regatta::train {

// tokens, targets: [seq * micro_batch] int64, position-major; only the first and the last stage
// read them.
struct MicroBatch {
  int index = 0;
  Tensor tokens;
  Tensor targets;
};

class Stage {
 public:
  // `parameters` and `tp` outlive the stage.
  Stage(const workload::Job& job, const workload::Strategy& strategy, workload::RankCoordinates at,
        const Parameters& parameters, TpGroup& tp);

  bool is_first() const { return embedding_.has_value(); }
  bool is_last() const { return head_.has_value(); }

  // The shape of a tensor at a stage boundary: [seq * micro_batch, hidden].
  std::vector<std::int64_t> boundary_shape() const;

  // input: from the stage before, undefined on the first. Returns the output, undefined on the
  // last, which adds to take_loss_sum() instead. Micro-batches in ascending order.
  Result<Tensor> forward(const MicroBatch& micro_batch, const Tensor& input);

  // For the oldest micro-batch after forward(). doutput: from the stage after, undefined on the
  // last. Returns the gradient for the stage before, undefined on the first. `ready`: as
  // block_backward; a function that does nothing, except with the last micro-batch of a step.
  Result<Tensor> backward(const Tensor& doutput, const GradientsReady& ready);

  // Cross-entropy summed over the tokens since the last call.
  double take_loss_sum();

 private:
  struct InFlight {
    MicroBatch micro_batch;
    std::vector<BlockCache> blocks;
    HeadCache head;
  };

  // Constant after construction.
  std::optional<Embedding> embedding_;
  std::vector<Block> blocks_;
  std::optional<Head> head_;
  BlockContext context_;
  bool recompute_ = false;
  double gradient_scale_ = 1;  // 1 / tokens of the global batch
  std::int64_t head_end_ = 0;  // of the head's gradients in the flat array
  std::int64_t total_ = 0;

  std::deque<InFlight> in_flight_;
  double loss_sum_ = 0;
};

}  // namespace regatta::train
