// pipeline/internal/chain.h: through which stages a micro-batch goes, and which part of each.
#pragma once

#include <optional>

#include "regatta/model/pipeline/order.h"

namespace regatta::pipeline {

struct Place {
  int stage = 0;
  int part = 0;
};

// The way of forwards; gradients go back the same way. Up to two ways: DualPipe's micro-batches go
// down through the parts 0, or up through the parts 1.
class Chain {
 public:
  explicit Chain(const Shape& shape) : schedule_(shape.schedule), stages_(shape.stages) {
    length_ = schedule_ == workload::Schedule::kDualPipe ? stages_ : stages_ * parts_of(shape);
  }

  std::optional<Place> before(Place at) const { return place(at, position(at) - 1); }
  std::optional<Place> after(Place at) const { return place(at, position(at) + 1); }

 private:
  // A second part on the way back.
  bool turns() const {
    return schedule_ == workload::Schedule::kZbV || schedule_ == workload::Schedule::kDualPipe;
  }

  int position(Place at) const {
    if (schedule_ == workload::Schedule::kDualPipe)
      return at.part == 0 ? at.stage : stages_ - 1 - at.stage;
    if (turns() && at.part == 1) return 2 * stages_ - 1 - at.stage;
    return at.part * stages_ + at.stage;
  }

  // The place at a position of the way that `like` is on.
  std::optional<Place> place(Place like, int position) const {
    if (position < 0 || position >= length_) return std::nullopt;
    if (schedule_ == workload::Schedule::kDualPipe)
      return Place{like.part == 0 ? position : stages_ - 1 - position, like.part};
    const int part = position / stages_;
    const int step = position % stages_;
    return Place{turns() && part == 1 ? stages_ - 1 - step : step, part};
  }

  workload::Schedule schedule_;
  int stages_;
  int length_ = 0;
};

}  // namespace regatta::pipeline
