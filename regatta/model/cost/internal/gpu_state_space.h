// cost/internal/gpu_state_space.h: the time and the memory of a state-space layer beside its two
// projections: convolution, scan by chunks, gated norm. Source: Dao and Gu, "Transformers are
// SSMs", 2024 (Mamba-2), sections 6 and 7, and the kernels published with it
// (mamba_ssm/ops/triton), which are one product or pass each.
#pragma once

#include "regatta/model/cost/gpu_block.h"
#include "regatta/model/workload/model.h"

namespace regatta::cost {

// The heads and groups of one rank: tensor ranks divide heads, and groups as far as they go.
workload::StateSpace state_space_share(const RankWork& work);

// Forward, and backward with the states and scores of the chunks computed again. Products count as
// attention.
BlockTime gpu_scan_time(const GpuEngines& engines, const RankWork& work);

// Bytes that a rank keeps of one token for the backward, in elements of `element` bytes: the
// projection, what the convolution made of it, the output of the scan, and a state for each chunk
// in fp32.
double state_space_bytes(const RankWork& work, double element);

}  // namespace regatta::cost
