#include "regatta/model/pipeline/internal/stage_order_builder.h"

#include <algorithm>

namespace regatta::pipeline {

StageOrderBuilder::StageOrderBuilder(const PipelineShape& shape) {
  const int m = shape.micro_batches;
  const bool is_dual = shape.schedule == workload::PipelineSchedule::kDualPipe;
  first_ = {0, is_dual ? m / 2 : 0};
  count_ = is_dual ? std::array{m / 2, m / 2} : std::array{m, m};
  passes_.reserve(static_cast<std::size_t>(3 * parts_of(shape)) * static_cast<std::size_t>(m));
}

void StageOrderBuilder::append(PassKind kind, int part, std::array<int, 2>& counts) {
  const auto at = static_cast<std::size_t>(part);
  const int index = counts[at]++;
  if (index < count_[at]) passes_.push_back({kind, part, first_[at] + index, false});
}

void StageOrderBuilder::overlapped(int forward_part, int backward_part) {
  forward(forward_part);
  passes_.back().overlaps_next = true;
  backward(backward_part);
}

void StageOrderBuilder::input_gradient(int part) {
  const std::size_t before = passes_.size();
  append(PassKind::kInputGradient, part, backwards_);
  if (passes_.size() > before)
    waiting_.push_back({PassKind::kWeightGradient, part, passes_.back().micro_batch, false});
}

void StageOrderBuilder::weight_gradient(int part) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [part](const Pass& pass) { return pass.part == part; });
  if (found == waiting_.end()) return;
  passes_.push_back(*found);
  waiting_.erase(found);
}

void StageOrderBuilder::oldest_weight_gradient() {
  if (!waiting_.empty()) weight_gradient(waiting_.front().part);
}

}  // namespace regatta::pipeline
