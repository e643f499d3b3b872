#include "regatta/runtime/comm/internal/compress/all_reduce.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/communicator_impl.h"
#include "regatta/runtime/comm/internal/compress/power_sgd.h"
#include "regatta/runtime/comm/internal/compress/schedules.h"

namespace regatta::comm::compress {

namespace {

// The seed of stochastic rounding; never 0. It differs on every rank, or the errors of similar
// gradients would add up instead of cancelling each other.
std::uint32_t seed_of(std::uint64_t calls, Rank rank) {
  std::uint64_t x = (calls << 32 | rank.index()) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
  return static_cast<std::uint32_t>(x >> 32) | 1U;
}

}  // namespace

// One call, from its arguments to its CompressedHandle.
class CompressedCallStarter {
 public:
  CompressedCallStarter(Communicator& communicator, const TensorBuffers& tensor,
                        const CompressionOptions& compression, ErrorFeedback* feedback)
      : communicator_(communicator),
        tensor_(tensor),
        compression_(compression),
        feedback_(feedback) {
    pending_.kind_ = communicator.world_size() > 1 ? compression.kind : CompressionKind::kNone;
  }

  CompressedHandle all_reduce() {
    if (!check_call("all_reduce", tensor_.count)) return std::move(pending_);
    if (pending_.kind_ == CompressionKind::kNone) return plain_all_reduce();
    const CompressionInput vector = start(tensor_.count);
    if (vector.kind == CompressionKind::kPowerSgd) take_factor();
    return run(CallKind::kAllReduce, [&](CollectiveSchedule& schedule, const GroupPosition& self) {
      if (vector.kind == CompressionKind::kTopK)
        top_k_all_reduce(schedule, self, vector, compression_.fraction, pending_.stats_);
      else if (vector.kind == CompressionKind::kPowerSgd)
        power_sgd_all_reduce(schedule, self, vector, compression_.rank, pending_.stats_);
      else
        two_step_all_reduce(schedule, self, vector, pending_.stats_);
    });
  }

  CompressedHandle reduce_scatter() {
    const std::size_t all = tensor_.count * static_cast<std::size_t>(communicator_.world_size());
    if (!check_call("reduce_scatter", all)) return std::move(pending_);
    if (pending_.kind_ == CompressionKind::kNone) return plain_reduce_scatter();
    if (!is_elementwise(pending_.kind_)) {
      refuse(fmt::format("reduce_scatter with {}: take bf16, f16, int8, fp8_e4m3 or fp8_e5m2",
                         to_string(pending_.kind_)));
      return std::move(pending_);
    }
    const CompressionInput vector = start(all);
    return run(CallKind::kReduceScatter,
               [&](CollectiveSchedule& schedule, const GroupPosition& self) {
                 one_step_reduce_scatter(schedule, self, vector, pending_.stats_);
               });
  }

 private:
  void refuse(const std::string& what) { pending_.error_ = Error{Code::kInvalidInput, what}; }

  // False when the call cannot be made; `in_count`: elements of the input.
  bool check_call(const char* name, std::size_t in_count) {
    if (const Status checked = check(compression_); !checked)
      pending_.error_ = checked.error();
    else if (compression_.kind == CompressionKind::kAutomatic)
      refuse(fmt::format("{} with automatic compression: call it through a Compressor", name));
    else if (compression_.kind != CompressionKind::kNone && tensor_.op != ReduceOp::kSum &&
             tensor_.op != ReduceOp::kAverage)
      refuse(fmt::format("{} with {}: only sums and averages can be compressed", name,
                         to_string(compression_.kind)));
    else if (feedback_ != nullptr && !feedback_->residual.empty() &&
             feedback_->residual.size() != in_count)
      refuse(
          fmt::format("{}: the feedback is of a tensor of {} elements, not {}; keep one for "
                      "each tensor",
                      name, feedback_->residual.size(), in_count));
    return !pending_.error_;
  }

  bool has_residual() const { return feedback_ != nullptr && !feedback_->residual.empty(); }

  // Plain calls send what earlier ones left out too.
  CompressedHandle plain_all_reduce() {
    const float* in = tensor_.in;
    if (has_residual()) {
      for (std::size_t i = 0; i < tensor_.count; ++i)
        tensor_.out[i] = in[i] + feedback_->residual[i];
      feedback_->residual.clear();
      in = tensor_.out;
    }
    pending_.handle_ =
        communicator_.all_reduce(in, tensor_.out, tensor_.count, DataType::kF32, tensor_.op);
    return std::move(pending_);
  }
  CompressedHandle plain_reduce_scatter() {
    const float* in = tensor_.in;
    if (has_residual()) {
      for (std::size_t i = 0; i < feedback_->residual.size(); ++i)
        feedback_->residual[i] += in[i];
      in = feedback_->residual.data();
      pending_.feedback_ = feedback_;
    }
    pending_.handle_ =
        communicator_.reduce_scatter(in, tensor_.out, tensor_.count, DataType::kF32, tensor_.op);
    return std::move(pending_);
  }

  CompressionInput start(std::size_t in_count) {
    pending_.stats_ = std::make_shared<ReductionStats>();
    CompressionInput vector{.in = tensor_.in,
                            .out = tensor_.out,
                            .count = tensor_.count,
                            .scale = tensor_.op == ReduceOp::kAverage
                                         ? 1 / static_cast<float>(communicator_.world_size())
                                         : 1,
                            .kind = pending_.kind_};
    std::uint64_t calls = 0;
    if (feedback_ != nullptr) {
      feedback_->residual.resize(in_count);
      vector.residual = feedback_->residual.data();
      calls = feedback_->calls++;
    } else if (!is_elementwise(pending_.kind_)) {
      pending_.stats_->residual.resize(in_count);
      vector.residual = pending_.stats_->residual.data();
    }
    if (compression_.stochastic) vector.seed = seed_of(calls, communicator_.rank());
    return vector;
  }

  // power_sgd begins where the last call of the tensor ended.
  void take_factor() {
    if (feedback_ == nullptr) return;
    if (feedback_->factor.size() == shape_matrix(tensor_.count, compression_.rank).right())
      pending_.stats_->factor = feedback_->factor;
    pending_.feedback_ = feedback_;
  }

  template <typename Build>
  CompressedHandle run(CallKind call, const Build& build) {
    const std::size_t bytes = tensor_.count * sizeof(float);
    const std::string size = format_bytes(Bytes{static_cast<long long>(bytes)});
    const CompressionKind way = pending_.kind_;
    pending_.handle_ = ScheduleRun::start(
        communicator_,
        {.code = encode_compressed(call, tensor_.op, way),
         .bytes = bytes,
         .name = fmt::format("{} of {} in {}", to_string(call), size, to_string(way))},
        [&](CollectiveSchedule& schedule, const GroupPosition& self) { build(schedule, self); });
    return std::move(pending_);
  }

  Communicator& communicator_;
  const TensorBuffers& tensor_;
  const CompressionOptions& compression_;
  ErrorFeedback* feedback_;
  CompressedHandle pending_;
};

bool CompressedHandle::done() const {
  return error_ || handle_.done();
}

Result<CompressionReport> CompressedHandle::wait() {
  if (error_) return *error_;
  REGATTA_TRY_DO(handle_.wait());
  ErrorFeedback* const feedback = std::exchange(feedback_, nullptr);
  if (kind_ == CompressionKind::kNone) {
    if (feedback != nullptr) feedback->residual.clear();
    return CompressionReport{};
  }
  if (feedback != nullptr) feedback->factor = stats_->factor;
  return CompressionReport{.kind = kind_, .relative_error = stats_->relative_error()};
}

Seconds CompressedHandle::started_at() const {
  const Seconds moved = handle_.started_at();
  if (kind_ == CompressionKind::kNone || stats_ == nullptr) return moved;
  const double began_s = stats_->started_s.load(std::memory_order_relaxed);
  return began_s == 0 ? moved : std::min(moved, Seconds{began_s});
}

Seconds CompressedHandle::ended_at() const {
  return handle_.ended_at();
}

CompressedHandle all_reduce(Communicator& communicator, const TensorBuffers& tensor,
                            const CompressionOptions& compression, ErrorFeedback* feedback) {
  return CompressedCallStarter(communicator, tensor, compression, feedback).all_reduce();
}

CompressedHandle reduce_scatter(Communicator& communicator, const TensorBuffers& tensor,
                                const CompressionOptions& compression, ErrorFeedback* feedback) {
  return CompressedCallStarter(communicator, tensor, compression, feedback).reduce_scatter();
}

}  // namespace regatta::comm::compress
