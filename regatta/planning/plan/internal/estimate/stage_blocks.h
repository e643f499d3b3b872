// plan/internal/estimate/stage_blocks.h: which blocks of the model each part of a pipeline stage
// holds. pipeline/pipeline_order.h says how every schedule lays the model.
#pragma once

#include <algorithm>

#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::plan {

// By kind; a model without experts has dense ones alone.
struct StageBlocks {
  double dense = 0;
  double expert = 0;

  StageBlocks& operator+=(const StageBlocks& other) {
    dense += other.dense;
    expert += other.expert;
    return *this;
  }
};

// The model in as many chunks as the pipeline is long; DualPipe has every chunk twice.
inline int chunk_count(const pipeline::PipelineShape& shape) {
  return shape.schedule == workload::PipelineSchedule::kDualPipe
             ? shape.stages
             : shape.stages * pipeline::parts_of(shape);
}

inline int chunk_of(const pipeline::PipelineShape& shape, int stage, int part) {
  if (part == 0 || shape.schedule == workload::PipelineSchedule::kInterleaved)
    return part * shape.stages + stage;
  return (shape.schedule == workload::PipelineSchedule::kZbV ? 2 : 1) * shape.stages - 1 - stage;
}

// The first stage that holds it.
inline int stage_of_chunk(const pipeline::PipelineShape& shape, int chunk) {
  if (shape.schedule == workload::PipelineSchedule::kZbV && chunk >= shape.stages)
    return 2 * shape.stages - 1 - chunk;
  return chunk % shape.stages;
}

// Blocks without experts are the first of the model.
inline StageBlocks blocks_of_chunk(const workload::ModelShape& model,
                                   const workload::Strategy& strategy, int chunk) {
  const workload::LayerRange range = part_layers(model, strategy, chunk);
  const int dense = std::clamp(workload::dense_layers(model) - range.first, 0, range.count);
  return {.dense = static_cast<double>(dense), .expert = static_cast<double>(range.count - dense)};
}

}  // namespace regatta::plan
