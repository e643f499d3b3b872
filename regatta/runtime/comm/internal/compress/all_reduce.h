// comm/internal/compress/all_reduce.h: sums of f32 vectors between the ranks of a communicator that
// send fewer bytes: see compression.h for the kinds, schedules.h for what they send.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/compression.h"

namespace regatta::comm::compress {

struct ReductionStats;

// A call under way. As with a Handle, the buffers and the feedback must stay alive until wait() has
// returned or done() is true.
class CompressedHandle {
 public:
  CompressedHandle() = default;
  // The handle of a call that was not made.
  explicit CompressedHandle(Error error) : error_(std::move(error)) {}

  // Whether the call was not made: the other ranks know nothing of it.
  bool is_refused() const { return error_.has_value(); }

  bool done() const;
  // Errors: those of Handle::wait(); kInvalidInput for wrong arguments.
  Result<CompressionReport> wait();
  Seconds started_at() const;
  Seconds ended_at() const;

 private:
  friend class CompressedCallStarter;  // all_reduce.cc
  Handle handle_;
  CompressionKind kind_ = CompressionKind::kNone;
  std::shared_ptr<ReductionStats> stats_;
  ErrorFeedback* feedback_ = nullptr;  // updated by wait()
  std::optional<Error> error_;
};

// `in` may be `out`; the buffers of reduce_scatter may overlap in any manner. An `out` that is
// exactly this rank's part of `in` needs no further memory.
struct TensorBuffers {
  const float* in = nullptr;
  float* out = nullptr;
  std::size_t count = 0;         // of all_reduce; of a rank's part of reduce_scatter
  ReduceOp op = ReduceOp::kSum;  // or kAverage
};

// The sum over all ranks, on all ranks. Collective: the same count, op and compression on all
// ranks. `feedback`: that of this tensor, empty before its first call; null: the compression error
// is dropped. It is complete after wait(), which comes before the next call that uses it; after an
// error other than a wrong argument its values are undefined: restore it from a checkpoint, or
// begin with an empty one.
// `compression.kind` is not automatic: see Compressor. Order: as any collective of the
// communicator; but where all ranks share a server, only waiting orders it and the communicator's
// own collectives.
CompressedHandle all_reduce(Communicator& communicator, const TensorBuffers& tensor,
                            const CompressionOptions& compression, ErrorFeedback* feedback);

// This rank's part of the sum. in: count * world_size elements. Element-wise kinds and none only.
// The reported error is that of the part.
CompressedHandle reduce_scatter(Communicator& communicator, const TensorBuffers& tensor,
                                const CompressionOptions& compression, ErrorFeedback* feedback);

}  // namespace regatta::comm::compress
