// cost/memory.h: the largest memory of one rank during a step, in closed form.
// Sources: Korthikanti et al., "Reducing activation recomputation", 2022 (activations of a block,
// micro-batches in flight under 1F1B); the tensors are those that regatta/runtime/train keeps.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/model/cost/gpu_block.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::cost {

struct MemoryUse {
  Bytes weights;  // in the compute precision, and the fp32 master copy when bf16
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // of all micro-batches in flight
  Bytes buffers;      // communication buckets, logits, work space
  Bytes total() const { return weights + gradients + optimizer + activations + buffers; }
};

// Parameters that one rank of stage `pp` holds: its blocks, the embedding on the first stage, the
// head on the last, each divided by tp where the runtime shards it.
long long rank_parameters(const workload::ModelShape& model, const workload::Strategy& strategy,
                          int pp);

// Bytes that the forward of one block keeps for its backward, for one micro-batch; with
// recomputation the block's input alone.
Bytes block_activations(const workload::ModelShape& model, const workload::Strategy& strategy,
                        workload::Precision precision);

// The whole of it for a rank of stage `pp`, `micro_batches` >= 1 per step.
MemoryUse rank_memory(const workload::ModelShape& model, const workload::Strategy& strategy,
                      workload::Precision precision, int pp, int micro_batches);

// The largest memory of a GPU during a step under a software stack, in closed form.
// Activations: Korthikanti et al., "Reducing activation recomputation in large transformer models",
// 2022, section 4 (equations 1 to 5), tensor by tensor, so that every kind of model has its own.

// Bytes, as numbers: they are summed and scaled by the million in a search.
struct GpuMemory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;  // of all micro-batches in flight
  double working = 0;      // of the block that is computed, logits, gathered weights
  double context = 0;      // of the driver and libraries

  double total() const { return weights + gradients + optimizer + activations + working + context; }
};

// The memory that the forward of one block keeps for its backward, for one micro-batch.
struct BlockMemory {
  double kept = 0;     // under the strategy's recomputation
  double working = 0;  // of a block while it is computed: all that it keeps without recomputation
};
BlockMemory gpu_block_memory(const SoftwareStack& stack, const RankWork& work,
                             workload::Recompute recompute, workload::Precision precision,
                             workload::BlockKind kind = {});

// Logits and their gradients of one micro-batch on the last stage.
double gpu_logits_memory(const RankWork& work);

// Parameters of one rank, those of experts apart: different ranks hold copies of the two kinds.
struct RankParameters {
  double plain = 0;
  double experts = 0;
  double largest_block = 0;  // what is gathered at a time where replicas share the weights
  // Those of both kinds that are not trained: they have no gradient and no optimizer state.
  double frozen_plain = 0;
  double frozen_experts = 0;

  double total() const { return plain + experts; }
  RankParameters trained() const {
    return {.plain = plain - frozen_plain,
            .experts = experts - frozen_experts,
            .largest_block = largest_block};
  }
};

// Parameters that a rank's optimizer updates, of those that are trained: its share of `held` where
// replicas share the optimizer's state (zero 1 and more), else all.
double updated_parameters(const workload::Strategy& strategy, const RankParameters& held);

// Whether replicas hold their share of the gradients alone. Stages of a pipeline have micro-batches
// in flight and reduce once, after the last of them: ZeRO-2 keeps whole gradients there (PyTorch's
// pipeline stages, DeepSpeed refuses the two together).
bool shares_gradients(const workload::Strategy& strategy);

// Weights, gradients and optimizer of a rank: the fields of GpuMemory that do not depend on
// micro-batches, and `working` of gathered weights.
GpuMemory gpu_state_memory(const SoftwareStack& stack, const RankParameters& parameters,
                           const workload::Strategy& strategy, workload::Precision precision);

// The number of ranks over which ZeRO shards: replicas of plain parameters, and of experts.
struct Shards {
  double plain = 1;
  double experts = 1;
};
Shards shards_of(const workload::Strategy& strategy);
// Ranks that hold the same parameters of experts; a fraction where the fold does not divide them.
double expert_copies(const workload::Strategy& strategy);

}  // namespace regatta::cost
