// train/adam.h: the optimizer: Adam with decoupled weight decay, on the flat arrays of one rank.
// Source: Kingma and Ba, ICLR 2015; Loshchilov and Hutter, ICLR 2019.
#pragma once

#include "regatta/model/workload/job.h"
#include "regatta/runtime/train/internal/parameters.h"

namespace regatta::train {

// Sum of squares of this rank's gradients, so that the sum over the tp and pp ranks of one replica
// is that of the whole model: a parameter that the tensor-parallel ranks hold whole is counted by
// rank 0 of them, a tied table by the first stage. In double.
double gradient_square_sum(const Parameters& parameters, int tp_rank);

// What gradients are multiplied with: clip_norm / norm where the norm is larger, else 1;
// clip_norm = 0: 1.
double clip_scale(double clip_norm, double norm);

// One update number `update` (from 1) with gradients times `scale`; sets the gradients to zero and
// refreshes the compute weights. One pass over memory: 16 bytes read and 16 written an element.
// Weight decay holds for matrices, not for biases and norms.
void adam_update(Parameters& parameters, const workload::Optimizer& optimizer, int update,
                 double scale);

}  // namespace regatta::train
