// pipeline/internal/micro_batch_route.h: through which stages a micro-batch goes, and which part of
// each.
#pragma once

#include <optional>

#include "regatta/model/pipeline/pipeline_order.h"

namespace regatta::pipeline {

struct RoutePosition {
  int stage = 0;
  int part = 0;
};

// The route of forwards; gradients go back on the same route. Up to two routes: DualPipe's
// micro-batches go down through the parts 0, or up through the parts 1.
class MicroBatchRoute {
 public:
  explicit MicroBatchRoute(const PipelineShape& shape)
      : schedule_(shape.schedule), stages_(shape.stages) {
    length_ =
        schedule_ == workload::PipelineSchedule::kDualPipe ? stages_ : stages_ * parts_of(shape);
  }

  std::optional<RoutePosition> before(RoutePosition at) const {
    return place(at, position(at) - 1);
  }
  std::optional<RoutePosition> after(RoutePosition at) const { return place(at, position(at) + 1); }

 private:
  // A second part on the return.
  bool turns() const {
    return schedule_ == workload::PipelineSchedule::kZbV ||
           schedule_ == workload::PipelineSchedule::kDualPipe;
  }

  int position(RoutePosition at) const {
    if (schedule_ == workload::PipelineSchedule::kDualPipe)
      return at.part == 0 ? at.stage : stages_ - 1 - at.stage;
    if (turns() && at.part == 1) return 2 * stages_ - 1 - at.stage;
    return at.part * stages_ + at.stage;
  }

  // The part at a position of the route of `like`.
  std::optional<RoutePosition> place(RoutePosition like, int position) const {
    if (position < 0 || position >= length_) return std::nullopt;
    if (schedule_ == workload::PipelineSchedule::kDualPipe)
      return RoutePosition{like.part == 0 ? position : stages_ - 1 - position, like.part};
    const int part = position / stages_;
    const int step = position % stages_;
    return RoutePosition{turns() && part == 1 ? stages_ - 1 - step : step, part};
  }

  workload::PipelineSchedule schedule_;
  int stages_;
  int length_ = 0;
};

}  // namespace regatta::pipeline
