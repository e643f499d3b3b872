// comm/compressor.h: the compressed sums of one communicator; with CompressionKind::kAutomatic it
// finds out what pays (compression_tuner.h). What it chooses depends on times, so that automatic
// runs are not repeated bit by bit.
#pragma once

#include <cstddef>
#include <deque>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/compression.h"
#include "regatta/runtime/comm/internal/compress/all_reduce.h"
#include "regatta/runtime/comm/internal/compress/compression_tuner.h"

namespace regatta::comm::compress {

// Thread rule: that of the communicator, which outlives it.
class Compressor {
 public:
  Compressor(Communicator& communicator, CompressionOptions compression);

  // As the free function; automatic waits for the trials of the size before it settles, and asks
  // all ranks then.
  CompressedHandle all_reduce(const TensorBuffers& tensor, ErrorFeedback* feedback);

  // What calls of this size take: the kind given, or what automatic settled on.
  CompressionKind choice(std::size_t bytes) const;

 private:
  struct Trial {
    CompressedHandle pending;
    std::size_t bytes = 0;
    CompressionKind kind = CompressionKind::kNone;
  };
  Status end_trials();
  Status settle(std::size_t bytes);

  Communicator* communicator_;
  CompressionOptions compression_;
  CompressionTuner tuner_;
  std::deque<Trial> trials_;  // not yet timed
};

}  // namespace regatta::comm::compress
