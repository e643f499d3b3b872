#include "regatta/runtime/comm/compressor.h"

#include <utility>
#include <vector>

#include "regatta/runtime/comm/internal/group_scope.h"

namespace regatta::comm::compress {

Compressor::Compressor(Communicator& communicator, Compression compression)
    : communicator_(&communicator),
      compression_(std::move(compression)),
      tuner_(compression_.allowed) {}

Pending Compressor::all_reduce(const Tensor& tensor, Feedback* feedback) {
  Compression taken = compression_;
  if (compression_.kind != Kind::kAutomatic || communicator_->world_size() == 1) {
    if (taken.kind == Kind::kAutomatic) taken.kind = Kind::kNone;
    return compress::all_reduce(*communicator_, tensor, taken, feedback);
  }
  const std::size_t bytes = tensor.count * sizeof(float);
  KindTuner::Turn turn = tuner_.next(bytes);
  if (turn.must_settle) {
    if (const Status alone = GroupScope::refuse("automatic compression"); !alone)
      return Pending(alone.error());
    if (const Status settled = settle(bytes); !settled) return Pending(settled.error());
    turn = tuner_.next(bytes);
  }
  taken.kind = turn.kind;
  Pending pending = compress::all_reduce(*communicator_, tensor, taken, feedback);
  if (turn.is_trial && !pending.is_refused()) trials_.push_back({pending, bytes, turn.kind});
  return pending;
}

// Waits for every trial, though an earlier one failed: none is left to a later call.
Status Compressor::end_trials() {
  Status ended;
  for (Trial& trial : std::exchange(trials_, {})) {
    if (const Result<Report> report = trial.pending.wait(); report)
      tuner_.record(trial.bytes, trial.kind, trial.pending.ended_at() - trial.pending.started_at());
    else if (ended)
      ended = report.error();
  }
  return ended;
}

Status Compressor::settle(std::size_t bytes) {
  REGATTA_TRY_DO(end_trials());
  std::vector<double> times = tuner_.times_of(bytes);
  REGATTA_TRY_DO(
      communicator_
          ->all_reduce(times.data(), times.data(), times.size(), DataType::kF64, ReduceOp::kMax)
          .wait());
  tuner_.settle(bytes, times);
  return {};
}

Kind Compressor::choice(std::size_t bytes) const {
  return compression_.kind == Kind::kAutomatic ? tuner_.choice(bytes) : compression_.kind;
}

}  // namespace regatta::comm::compress
