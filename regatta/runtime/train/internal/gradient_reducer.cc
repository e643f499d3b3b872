#include "regatta/runtime/train/internal/gradient_reducer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace regatta::train {
namespace {

constexpr std::int64_t kBucket = workload::kGradientBucketElements;

}  // namespace

comm::compress::CompressionOptions compression_of(workload::GradientCompression compression) {
  using comm::compress::CompressionKind;
  switch (compression) {
    case workload::GradientCompression::kNone:
      return {};
    case workload::GradientCompression::kBf16:
      return {.kind = CompressionKind::kBf16};
    case workload::GradientCompression::kFp16:
      return {.kind = CompressionKind::kF16};
    case workload::GradientCompression::kFp8:
      return {.kind = CompressionKind::kFp8E4m3};
    case workload::GradientCompression::kInt8:
      return {.kind = CompressionKind::kInt8};
    case workload::GradientCompression::kTopK:
      return {.kind = CompressionKind::kTopK, .fraction = 0.01};
    case workload::GradientCompression::kPowerSgd:
      return {.kind = CompressionKind::kPowerSgd, .rank = 4};
    case workload::GradientCompression::kAutomatic:
      return {.kind = CompressionKind::kAutomatic};
  }
  return {};
}

GradientReducer::GradientReducer(comm::Communicator* communicator, Tensor gradient,
                                 const Options& options, PhaseClock& clock)
    : gradient_(std::move(gradient)), overlap_(options.overlap), clock_(clock) {
  if (communicator == nullptr) return;
  compressor_.emplace(*communicator, options.compression);
  if (options.compression.kind != comm::compress::CompressionKind::kNone)
    feedback_.resize(static_cast<std::size_t>((gradient_.numel() + kBucket - 1) / kBucket));
}

void GradientReducer::submit_until(std::int64_t end) {
  float* data = gradient_.data_ptr<float>() + submitted_;
  const auto bucket = static_cast<std::size_t>(submitted_ / kBucket);
  pending_.push_back(compressor_->all_reduce(
      {.in = data, .out = data, .count = static_cast<std::size_t>(end - submitted_)},
      feedback_.empty() ? nullptr : &feedback_[bucket]));
  submitted_ = end;
}

void GradientReducer::ready(std::int64_t end) {
  if (!compressor_ || !overlap_) return;
  while (submitted_ + kBucket <= end)
    submit_until(submitted_ + kBucket);
}

Status GradientReducer::finish() {
  if (!compressor_) return {};
  clock_.enter({.phase = workload::Phase::kDpComm});
  const std::int64_t total = gradient_.numel();
  while (submitted_ < total)
    submit_until(std::min(submitted_ + kBucket, total));
  Status status;
  for (comm::compress::CompressedHandle& pending : pending_) {
    const auto done = pending.wait();
    if (!done && status) status = done.error();
    if (done) {
      clock_.background({.phase = workload::Phase::kDpComm}, pending.started_at(),
                        pending.ended_at());
    }
  }
  pending_.clear();
  submitted_ = 0;
  clock_.enter({});
  return status;
}

}  // namespace regatta::train
