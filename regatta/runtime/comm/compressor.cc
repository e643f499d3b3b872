#include "regatta/runtime/comm/compressor.h"

#include <utility>
#include <vector>

#include "regatta/runtime/comm/internal/group_scope.h"

namespace regatta::comm::compress {

Compressor::Compressor(Communicator& communicator, CompressionOptions compression)
    : communicator_(&communicator),
      compression_(std::move(compression)),
      tuner_(compression_.allowed) {}

CompressedHandle Compressor::all_reduce(const TensorBuffers& tensor, ErrorFeedback* feedback) {
  CompressionOptions taken = compression_;
  if (compression_.kind != CompressionKind::kAutomatic || communicator_->world_size() == 1) {
    if (taken.kind == CompressionKind::kAutomatic) taken.kind = CompressionKind::kNone;
    return compress::all_reduce(*communicator_, tensor, taken, feedback);
  }
  const std::size_t bytes = tensor.count * sizeof(float);
  CompressionTuner::Turn turn = tuner_.next(bytes);
  if (turn.must_settle) {
    if (const Status alone = GroupScope::refuse("automatic compression"); !alone)
      return CompressedHandle(alone.error());
    if (const Status settled = settle(bytes); !settled) return CompressedHandle(settled.error());
    turn = tuner_.next(bytes);
  }
  taken.kind = turn.kind;
  CompressedHandle pending = compress::all_reduce(*communicator_, tensor, taken, feedback);
  if (turn.is_trial && !pending.is_refused()) trials_.push_back({pending, bytes, turn.kind});
  return pending;
}

// Waits for every trial, though an earlier one failed: none is left to a later call.
Status Compressor::end_trials() {
  Status ended;
  for (Trial& trial : std::exchange(trials_, {})) {
    if (const Result<CompressionReport> report = trial.pending.wait(); report)
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

CompressionKind Compressor::choice(std::size_t bytes) const {
  return compression_.kind == CompressionKind::kAutomatic ? tuner_.choice(bytes)
                                                          : compression_.kind;
}

}  // namespace regatta::comm::compress
