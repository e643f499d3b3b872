// pipeline/internal/stage_order_builder.h: writes down the order of one stage, each part's
// micro-batches in turn; what pipeline_order.cc and the files of single schedules share.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/pipeline_order.h"

namespace regatta::pipeline {

// Appends the next micro-batch of a part (0 or 1) at each call. A schedule may be written for more
// micro-batches than there are: what is past the last one is left out.
class StageOrderBuilder {
 public:
  explicit StageOrderBuilder(const PipelineShape& shape);

  void forward(int part) { append(PassKind::kForward, part, forwards_); }
  void backward(int part) { append(PassKind::kBackward, part, backwards_); }
  // A forward of one part while another's backward runs.
  void overlapped(int forward_part, int backward_part);
  // Leaves the weight gradient for later.
  void input_gradient(int part);
  // Adds the weight gradient of one part, or of the input gradient that has waited longest; nothing
  // when none waits.
  void weight_gradient(int part);
  void oldest_weight_gradient();

  int forwards(int part) const { return at(forwards_, part); }
  std::vector<Pass> take() { return std::move(passes_); }

 private:
  void append(PassKind kind, int part, std::array<int, 2>& counts);

  std::array<int, 2> first_{};  // micro-batch of each part
  std::array<int, 2> count_{};
  std::array<int, 2> forwards_{};
  std::array<int, 2> backwards_{};
  std::vector<Pass> waiting_;  // weight gradients
  std::vector<Pass> passes_;
};

std::vector<Pass> zb_h1(const PipelineShape& shape, int stage);
std::vector<Pass> zb_v(const PipelineShape& shape, int stage);
std::vector<Pass> dual_pipe(const PipelineShape& shape, int stage);

}  // namespace regatta::pipeline
