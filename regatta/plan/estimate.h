// plan/estimate.h: a training step on a GPU cluster in closed form: what each part of it takes, for
// a complete strategy on equal servers in rank order, under a software stack (cost/stack.h).
// Pipeline: Narayanan et al., SC'21, section 2.2 (1F1B and interleaved).
#pragma once

#include "regatta/core/result.h"
#include "regatta/core/units.h"
#include "regatta/cost/stack.h"
#include "regatta/topo/cluster.h"
#include "regatta/workload/model.h"
#include "regatta/workload/strategy.h"

namespace regatta::plan {

// The references outlive the call.
struct EstimateInput {
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  int global_batch = 0;
  const topo::ServerType& server;
  const cost::Stack& stack;
};

// The parts of a step on the path that decides it: one after the other, their sum is the step.
struct StepBreakdown {
  Seconds matmul;
  Seconds attention;
  Seconds passes;     // memory-bound operators
  Seconds recompute;  // of activations
  Seconds host;       // the device waits for the host to launch kernels
  Seconds tp_comm;
  Seconds pp_comm;
  Seconds dp_comm;
  Seconds bubble;
  Seconds optimizer;  // with the sums of gradients of micro-batches

  StepBreakdown& operator+=(const StepBreakdown& other);
  StepBreakdown& operator*=(double factor);
  Seconds total() const;
};

// Fails with kInvalidInput where the strategy does not divide the job (workload::micro_batches),
// the micro-batches do not divide among interleaved stages, and for a model or device that the
// closed form does not know.
Result<StepBreakdown> estimate_step(const EstimateInput& input);

}  // namespace regatta::plan
