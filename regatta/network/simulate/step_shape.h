// simulate/step_shape.h: a training step as numbers: how long stages compute and what ranks send.
#pragma once

#include "regatta/base/core/units.h"

namespace regatta::simulate {

// Ranks are numbered tensor first, then data, then pipeline, as Megatron-LM does: rank = tensor +
// tp (data + dp stage). What tensor-parallel ranks send each other inside a server is part of the
// times.
struct SimulatedStep {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int micro_batches = 1;
  Seconds forward;    // of one micro-batch on one stage
  Seconds backward;   // the same
  Bytes activations;  // that a rank sends to the next stage for a micro-batch, and gets back
  Bytes gradients;    // that a rank adds up with those of the other replicas, once a step
  Seconds optimizer;  // after that
  bool folds = true;  // rings of replicas move as one flow each (see step_traffic.h)
};

}  // namespace regatta::simulate
