// train/internal/gradient_reducer.h: sums the gradients of the data-parallel replicas, in buckets
// that are sent while backward still computes the later ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/model/workload/strategy.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/compressor.h"
#include "regatta/runtime/train/internal/phase_clock.h"
#include "regatta/runtime/train/internal/tensor.h"

namespace regatta::train {

// The options of comm for a strategy's compression.
comm::compress::CompressionOptions compression_of(workload::GradientCompression compression);

class GradientReducer {
 public:
  struct Options {
    bool overlap = true;  // false: finish() sends everything
    comm::compress::CompressionOptions compression;
  };
  // gradient: flat fp32, in the order in which backward finishes it. `communicator`: null when
  // there is one replica.
  GradientReducer(comm::Communicator* communicator, Tensor gradient, const Options& options,
                  PhaseClock& clock);

  // All elements before `end` are final: submits the buckets that are complete.
  void ready(std::int64_t end);

  // Submits the rest and waits for all; the time counts as kDpComm.
  Status finish();

  // The error feedback of the compressed calls by bucket, part of a checkpoint. Empty without
  // compression.
  std::vector<comm::compress::ErrorFeedback>& feedback() { return feedback_; }

 private:
  void submit_until(std::int64_t end);

  std::optional<comm::compress::Compressor> compressor_;  // empty: one replica
  Tensor gradient_;
  bool overlap_;
  PhaseClock& clock_;
  std::int64_t submitted_ = 0;
  std::vector<comm::compress::CompressedHandle> pending_;
  std::vector<comm::compress::ErrorFeedback> feedback_;
};

}  // namespace regatta::train
