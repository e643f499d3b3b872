// The orders that split the backward pass: ZB-H1, ZB-V.
#include <algorithm>

#include "regatta/model/pipeline/internal/stage_order_builder.h"

namespace regatta::pipeline {

namespace {

// Weight gradient at once, as long as forwards wait to fill every bubble.
void whole_backward(StageOrderBuilder& order, int part) {
  order.input_gradient(part);
  order.weight_gradient(part);
}

}  // namespace

std::vector<Pass> zb_h1(const PipelineShape& shape, int stage) {
  StageOrderBuilder order(shape);
  const int m = shape.micro_batches;
  const int ahead = warmup_forwards(shape, stage);
  for (int i = 0; i < ahead; ++i)
    order.forward(0);
  for (int i = 0; i < m; ++i) {
    if (i + ahead < m) order.forward(0);
    order.input_gradient(0);
    if (i >= stage) order.weight_gradient(0);
  }
  for (int i = 0; i < stage; ++i)
    order.weight_gradient(0);
  return order.take();
}

std::vector<Pass> zb_v(const PipelineShape& shape, int stage) {
  StageOrderBuilder order(shape);
  const int behind = shape.stages - stage;
  // Fewer micro-batches than fill the pipeline follow the order of as many as do.
  const int m = std::max(shape.micro_batches, 2 * shape.stages - 1);
  for (int i = 0; i < 2 * behind - 1; ++i)
    order.forward(0);
  for (int i = 0; i < stage; ++i) {
    order.forward(1);
    order.forward(0);
  }
  for (int i = 0; i < behind; ++i) {
    order.forward(1);
    whole_backward(order, 1);
  }
  while (order.forwards(1) < m) {
    if (order.forwards(0) < m) order.forward(0);
    whole_backward(order, 0);
    order.forward(1);
    whole_backward(order, 1);
  }
  for (int i = 0; i < stage; ++i) {
    order.input_gradient(0);
    order.input_gradient(1);
  }
  for (int i = 0; i < behind; ++i) {
    order.input_gradient(0);
    order.weight_gradient(0);
  }
  for (int i = 0; i < stage; ++i)
    order.weight_gradient(1);
  for (int i = 0; i < stage; ++i)
    order.weight_gradient(0);
  return order.take();
}

}  // namespace regatta::pipeline
