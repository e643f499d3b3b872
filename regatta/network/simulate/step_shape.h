// simulate/step_shape.h: a training step as numbers: compute times of stages and bytes of ranks.
#pragma once

#include "regatta/base/core/units.h"

namespace regatta::simulate {

// Ranks are numbered tensor first, then data, then pipeline, as Megatron-LM does: rank = tensor +
// tp (data + dp stage). The compute times include tensor-parallel communication inside servers.
struct SimulatedStep {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int micro_batches = 1;
  Seconds forward;         // of one micro-batch on one stage
  Seconds backward;        // the same
  Bytes activations;       // that a rank sends to the next stage for a micro-batch, and gets back
  Bytes gradients;         // that a rank reduces with the other replicas, once a step
  Seconds optimizer;       // after that
  bool aggregates = true;  // each ring of replicas is one flow (see step_traffic.h)
};

}  // namespace regatta::simulate
