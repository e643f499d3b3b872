// comm/compressor.h: the compressed all-reduces of one communicator; with
// CompressionKind::kAutomatic it measures which kind is fastest (compression_tuner.h). The choice
// depends on times, so automatic runs do not repeat bit by bit.
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

  // As the free function; automatic waits for the trials of the size before it settles, which is a
  // collective of its own.
  CompressedHandle all_reduce(const TensorBuffers& tensor, ErrorFeedback* feedback);

  // The kind for calls of this size: the one given, or the one that automatic settled on.
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
