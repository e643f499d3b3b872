#include <algorithm>

#include "regatta/model/pipeline/internal/stage_order_builder.h"

namespace regatta::pipeline {

std::vector<Pass> dual_pipe(const PipelineShape& shape, int stage) {
  StageOrderBuilder order(shape);
  const int p = shape.stages;
  const int depth = std::min(stage, p - 1 - stage);  // from the nearer end
  const int inner = p / 2 - 1 - depth;               // stages between this one and the middle
  const int near = stage < p / 2 ? 0 : 1;            // part whose micro-batches enter at that end
  const int far = 1 - near;
  for (int i = 0; i < 2 * inner; ++i)
    order.forward(near);
  for (int i = 0; i <= depth; ++i) {
    order.forward(near);
    order.forward(far);
  }
  for (int i = 0; i < inner; ++i) {
    order.input_gradient(far);
    order.oldest_weight_gradient();
    order.forward(far);
  }
  for (int i = 0; i < shape.micro_batches / 2 - p + depth + 1; ++i) {
    // The two middle stages would wait for each other if their first pair overlapped.
    if (i == 0 && inner == 0) {
      order.forward(near);
      order.backward(far);
    } else {
      order.overlapped(near, far);
    }
    order.overlapped(far, near);
  }
  for (int i = 0; i < inner; ++i) {
    order.backward(far);
    order.overlapped(far, near);
  }
  // The second half of these leaves its weight gradients for the end.
  for (int i = 0; i < 2 * (depth + 1); ++i) {
    const int part = i % 2 == 0 ? far : near;
    if (i > depth)
      order.input_gradient(part);
    else
      order.backward(part);
  }
  for (int i = 0; i < inner; ++i) {
    order.oldest_weight_gradient();
    order.input_gradient(near);
  }
  for (int i = 0; i <= depth; ++i)
    order.oldest_weight_gradient();
  return order.take();
}

}  // namespace regatta::pipeline
