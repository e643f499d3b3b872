#include "regatta/model/pipeline/internal/stage_order.h"

#include <algorithm>

namespace regatta::pipeline {

StageOrder::StageOrder(const Shape& shape) {
  const int m = shape.micro_batches;
  const bool is_dual = shape.schedule == workload::Schedule::kDualPipe;
  first_ = {0, is_dual ? m / 2 : 0};
  count_ = is_dual ? std::array{m / 2, m / 2} : std::array{m, m};
  pieces_.reserve(static_cast<std::size_t>(3 * parts_of(shape)) * static_cast<std::size_t>(m));
}

void StageOrder::append(PieceKind kind, int part, std::array<int, 2>& counts) {
  const auto at = static_cast<std::size_t>(part);
  const int index = counts[at]++;
  if (index < count_[at]) pieces_.push_back({kind, part, first_[at] + index, false});
}

void StageOrder::overlapped(int forward_part, int backward_part) {
  forward(forward_part);
  pieces_.back().overlaps_next = true;
  backward(backward_part);
}

void StageOrder::input_gradient(int part) {
  const std::size_t before = pieces_.size();
  append(PieceKind::kInputGradient, part, backwards_);
  if (pieces_.size() > before)
    waiting_.push_back({PieceKind::kWeightGradient, part, pieces_.back().micro_batch, false});
}

void StageOrder::weight_gradient(int part) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [part](const Piece& piece) { return piece.part == part; });
  if (found == waiting_.end()) return;
  pieces_.push_back(*found);
  waiting_.erase(found);
}

void StageOrder::oldest_weight_gradient() {
  if (!waiting_.empty()) weight_gradient(waiting_.front().part);
}

}  // namespace regatta::pipeline
