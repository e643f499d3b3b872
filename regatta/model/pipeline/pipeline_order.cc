#include "regatta/model/pipeline/pipeline_order.h"

#include <algorithm>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/pipeline/internal/stage_order_builder.h"

namespace regatta::pipeline {
namespace {

using workload::PipelineSchedule;

std::vector<Pass> one_forward_one_backward(const PipelineShape& shape, int stage) {
  StageOrderBuilder order(shape);
  const int ahead = warmup_forwards(shape, stage);
  for (int i = 0; i < ahead; ++i)
    order.forward(0);
  for (int i = ahead; i < shape.micro_batches; ++i) {
    order.forward(0);
    order.backward(0);
  }
  for (int i = 0; i < ahead; ++i)
    order.backward(0);
  return order.take();
}

// The forwards of a stage in order; gradients go through the parts in reverse.
std::vector<Pass> forwards_in_groups(const PipelineShape& shape) {
  const int m = shape.micro_batches;
  const int groups = std::max(1, m / shape.stages);
  std::vector<Pass> forwards;
  for (int group = 0, first = 0; group < groups; ++group) {
    const int end = first + m / groups + (group < m % groups ? 1 : 0);
    for (int part = 0; part < shape.virtual_stages; ++part) {
      for (int i = first; i < end; ++i)
        forwards.push_back({PassKind::kForward, part, i, false});
    }
    first = end;
  }
  return forwards;
}

std::vector<Pass> interleaved(const PipelineShape& shape, int stage) {
  const std::vector<Pass> forwards = forwards_in_groups(shape);
  const int total = static_cast<int>(forwards.size());
  const int ahead = warmup_forwards(shape, stage);
  std::vector<Pass> passes;
  passes.reserve(2 * forwards.size());
  for (int i = 0; i < total + ahead; ++i) {
    if (i < total) passes.push_back(at(forwards, i));
    if (i < ahead) continue;
    const Pass& forward = at(forwards, i - ahead);
    passes.push_back(
        {PassKind::kBackward, shape.virtual_stages - 1 - forward.part, forward.micro_batch, false});
  }
  return passes;
}

}  // namespace

int largest_group(const PipelineShape& shape) {
  const int groups = std::max(1, shape.micro_batches / shape.stages);
  return (shape.micro_batches + groups - 1) / groups;
}

int warmup_forwards(const PipelineShape& shape, int stage) {
  const int later = shape.stages - 1 - stage;
  if (shape.schedule != PipelineSchedule::kInterleaved) return std::min(shape.micro_batches, later);
  const int others = (shape.virtual_stages - 1) * largest_group(shape);
  return std::min(shape.micro_batches * shape.virtual_stages, 2 * later + others);
}

int parts_of(const PipelineShape& shape) {
  const bool has_two =
      shape.schedule == PipelineSchedule::kZbV || shape.schedule == PipelineSchedule::kDualPipe;
  return has_two ? 2 : shape.virtual_stages;
}

Status check_shape(const PipelineShape& shape) {
  const int p = shape.stages;
  const int m = shape.micro_batches;
  if (std::min({p, m, shape.virtual_stages}) < 1) {
    return Error{Code::kInvalidInput,
                 fmt::format("pipeline of {} stages, {} micro-batches and {} virtual stages: each "
                             "must be at least 1",
                             p, m, shape.virtual_stages)};
  }
  if (shape.virtual_stages > 1 && shape.schedule != PipelineSchedule::kInterleaved) {
    return Error{Code::kInvalidInput,
                 fmt::format("schedule {} with {} virtual stages: only interleaved has more than 1",
                             to_string(shape.schedule), shape.virtual_stages)};
  }
  if (shape.schedule == PipelineSchedule::kDualPipe && (p % 2 != 0 || m % 2 != 0 || m < 2 * p)) {
    return Error{Code::kInvalidInput,
                 fmt::format("schedule dualpipe with {} stages and {} micro-batches: both must be "
                             "even, and the micro-batches at least twice the stages",
                             p, m)};
  }
  return {};
}

std::vector<Pass> stage_order(const PipelineShape& shape, int stage) {
  REGATTA_CHECK(stage >= 0 && stage < shape.stages);
  switch (shape.schedule) {
    case PipelineSchedule::k1F1B:
      return one_forward_one_backward(shape, stage);
    case PipelineSchedule::kInterleaved:
      return interleaved(shape, stage);
    case PipelineSchedule::kZbH1:
      return zb_h1(shape, stage);
    case PipelineSchedule::kZbV:
      return zb_v(shape, stage);
    case PipelineSchedule::kDualPipe:
      return dual_pipe(shape, stage);
  }
  return {};
}

Result<PipelineOrder> pipeline_order(const PipelineShape& shape) {
  REGATTA_TRY_DO(check_shape(shape));
  PipelineOrder order;
  order.reserve(as_index(shape.stages));
  for (int stage = 0; stage < shape.stages; ++stage)
    order.push_back(stage_order(shape, stage));
  return order;
}

}  // namespace regatta::pipeline
