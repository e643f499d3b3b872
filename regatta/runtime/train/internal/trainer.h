// train/internal/trainer.h: trains a job as one of its ranks: data, steps, optimizer, checkpoints.
// The loss after any step does not depend on the parallel form, except for rounding.
#pragma once

#include <functional>

#include "regatta/base/core/result.h"
#include "regatta/runtime/train/internal/phase_clock.h"
#include "regatta/runtime/train/internal/rank_communicators.h"
#include "regatta/runtime/train/internal/train_spec.h"

namespace regatta::train {

struct StepReport {
  int step = 0;              // from 0
  double loss = 0;           // mean over the global batch, nats a token; on every rank; finite
  double gradient_norm = 0;  // before clipping, finite; 0 when clipping is off
  long long tokens = 0;      // of the global batch
  StepTimes times;           // of this rank
};

struct TrainHooks {
  std::function<void(const StepReport&)> on_step;
  // Called between micro-batches; true ends the training with kUnavailable "stopped on request".
  std::function<bool()> stop_requested;
};

// Runs steps [resumed step or 0, spec.job.steps) on the calling thread, all ranks together.
// Errors: kInvalidInput (strategy, data, checkpoint), kNotFound (no checkpoint), those of comm,
// kExhausted when memory runs out, kUnavailable for a failure of libtorch, kConflict at the first
// step whose loss or gradient norm is not finite: it is neither applied nor reported. Messages do
// not name the rank: the session does.
Status train(const TrainSpec& spec, RankCommunicators& groups, const TrainHooks& hooks);

}  // namespace regatta::train
