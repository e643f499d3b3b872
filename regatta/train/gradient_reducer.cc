#include "regatta/train/gradient_reducer.h"

#include <algorithm>
#include <utility>

#include "regatta/workload/strategy.h"

namespace regatta::train {
namespace {

constexpr std::int64_t kBucket = workload::kGradientBucketElements;

}  // namespace

GradientReducer::GradientReducer(coll::Communicator* communicator, Tensor gradient, bool overlap,
                                 PhaseClock& clock)
    : communicator_(communicator),
      gradient_(std::move(gradient)),
      overlap_(overlap),
      clock_(clock) {}

void GradientReducer::submit_until(std::int64_t end) {
  float* data = gradient_.data_ptr<float>() + submitted_;
  const auto count = static_cast<std::size_t>(end - submitted_);
  handles_.push_back(
      communicator_->all_reduce(data, data, count, coll::DataType::kF32, coll::ReduceOp::kSum));
  submitted_ = end;
}

void GradientReducer::ready(std::int64_t end) {
  if (communicator_ == nullptr || !overlap_) return;
  while (submitted_ + kBucket <= end)
    submit_until(submitted_ + kBucket);
}

Status GradientReducer::finish() {
  if (communicator_ == nullptr) return {};
  clock_.enter({.phase = workload::Phase::kDpComm});
  const std::int64_t total = gradient_.numel();
  while (submitted_ < total)
    submit_until(std::min(submitted_ + kBucket, total));
  Status status;
  for (coll::Handle& handle : handles_) {
    const Status done = handle.wait();
    if (!done && status) status = done;
    if (done) {
      clock_.background({.phase = workload::Phase::kDpComm}, handle.started_at(),
                        handle.ended_at());
    }
  }
  handles_.clear();
  submitted_ = 0;
  clock_.enter({});
  return status;
}

}  // namespace regatta::train
