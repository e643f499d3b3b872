// train/adam.h: the optimizer: Adam with decoupled weight decay, on the flat arrays of one rank.
// Source: Kingma and Ba, ICLR 2015; Loshchilov and Hutter, ICLR 2019.
#pragma once

#include "regatta/model/workload/job.h"
#include "regatta/runtime/train/internal/parameters.h"

namespace regatta::train {

// Sum of squares of this rank's gradients, so that the sum over the tp and pp ranks of one replica
// is that of the whole model: rank 0 of a tensor-parallel group counts the parameters that all its
// ranks hold, the first stage a tied table. In double.
double gradient_square_sum(const Parameters& parameters, int tp_rank);

// The factor of the gradients: clip_norm / norm where the norm is larger, else 1; 1 for clip_norm =
// 0.
double clip_scale(double clip_norm, double norm);

// One update number `update` (from 1) with gradients times `scale`; sets the gradients to zero and
// refreshes the compute weights. One pass over memory: 16 bytes read and 16 written an element.
// Weight decay holds for matrices, not for biases and norms.
void adam_update(Parameters& parameters, const workload::Optimizer& optimizer, int update,
                 double scale);

}  // namespace regatta::train
