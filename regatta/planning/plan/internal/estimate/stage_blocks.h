// plan/internal/estimate/stage_blocks.h: which blocks of the model each part of a pipeline stage
// holds. pipeline/pipeline_order.h says how every schedule lays the model.
#pragma once

#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/model/workload/blocks.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::plan {

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

inline workload::BlockCounts blocks_of_chunk(const workload::ModelShape& model,
                                             const workload::Strategy& strategy, int chunk) {
  const workload::LayerRange range = part_layers(model, strategy, chunk);
  workload::BlockCounts blocks = block_counts(model, range.first, range.count);
  // Modules that predict stand with the output layer, behind parts without layers as well.
  if (chunk + 1 < strategy.pp * parts_per_stage(strategy)) blocks[workload::kPredictionKind] = 0;
  return blocks;
}

// Whether stages of an even split differ by no more than a layer, and where blocks without experts
// are: what closed forms of such a split take for granted.
inline bool are_stages_alike(const workload::ModelShape& model) {
  return are_kinds_in_order(model) && model.mtp_layers == 0;
}

}  // namespace regatta::plan
