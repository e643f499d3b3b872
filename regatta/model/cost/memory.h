// cost/memory.h: what one rank must hold at its worst moment, in closed form.
// Sources: Korthikanti et al., "Reducing activation recomputation", 2022 (activations of a block,
// micro-batches in flight under 1F1B); the tensors are those that regatta/runtime/train keeps.
#pragma once

#include "regatta/base/core/units.h"
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

// Micro-batches whose activations stage `pp` holds at once under 1F1B: min(m, pp_size - pp).
int micro_batches_in_flight(const workload::Strategy& strategy, int pp, int micro_batches);

// The whole of it for a rank of stage `pp`, `micro_batches` >= 1 per step.
MemoryUse rank_memory(const workload::ModelShape& model, const workload::Strategy& strategy,
                      workload::Precision precision, int pp, int micro_batches);

}  // namespace regatta::cost
