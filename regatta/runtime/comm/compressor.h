// comm/compressor.h: the compressed sums of one communicator; with Kind::kAutomatic it
// finds out what pays (kind_tuner.h). What it chooses depends on times, so that automatic runs are
// not repeated bit by bit.
#pragma once

#include <cstddef>
#include <deque>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/compression.h"
#include "regatta/runtime/comm/internal/compress/all_reduce.h"
#include "regatta/runtime/comm/internal/compress/kind_tuner.h"

namespace regatta::comm::compress {

// Thread rule: that of the communicator, which outlives it.
class Compressor {
 public:
  Compressor(Communicator& communicator, Compression compression);

  // As the free function; automatic waits for the trials of the size before it settles, and asks
  // all ranks then.
  Pending all_reduce(const Tensor& tensor, Feedback* feedback);

  // What calls of this size take: the kind given, or what automatic settled on.
  Kind choice(std::size_t bytes) const;

 private:
  struct Trial {
    Pending pending;
    std::size_t bytes = 0;
    Kind kind = Kind::kNone;
  };
  Status end_trials();
  Status settle(std::size_t bytes);

  Communicator* communicator_;
  Compression compression_;
  KindTuner tuner_;
  std::deque<Trial> trials_;  // not yet timed
};

}  // namespace regatta::comm::compress
