#include "regatta/planning/plan/internal/estimate/stage_memory.h"

#include <algorithm>
#include <cmath>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/closed_form.h"

namespace regatta::plan {

using workload::BlockCounts;
using workload::dense_and_expert_blocks;
using workload::Offload;
using workload::PipelineSchedule;

StageMemory::StageMemory(const EstimateInput& input, const MicroBatchWork& work, int micro_batches)
    : input_(input),
      strategy_(input.strategy),
      work_(work),
      micro_batches_(micro_batches),
      shape_{.schedule = strategy_.schedule,
             .stages = strategy_.pp,
             .micro_batches = micro_batches,
             .virtual_stages = strategy_.virtual_stages},
      parts_(pipeline::parts_of(shape_)),
      chunks_(chunk_count(shape_)) {
  const int layers = input.model.layers;
  const int dense = workload::dense_layers(input.model);
  are_alike_ = are_stages_alike(input.model) && strategy_.stage_layers.empty() &&
               layers % chunks_ == 0 && (dense == 0 || dense == layers);
  const double blocks = static_cast<double>(layers) / chunks_ * parts_;
  alike_ = dense == 0 ? dense_and_expert_blocks(0, blocks) : dense_and_expert_blocks(blocks, 0);
}

double StageMemory::kept(const BlockCounts& blocks) const {
  double kept = 0;
  for (int kind = 0; kind < workload::kBlockKinds; ++kind)
    kept += at(work_.blocks, kind).memory.kept * blocks[kind];
  return kept;
}

double StageMemory::output() const {
  return strategy_.pp > 1 ? work_.output : 0;
}

// The micro-batch that is computed and the one that is copied.
double StageMemory::held(const BlockCounts& blocks, double kept_in_flight) const {
  const bool is_offloaded =
      strategy_.offload == Offload::kActivations || strategy_.offload == Offload::kBoth;
  if (!is_offloaded) return kept_in_flight;
  return std::min(kept_in_flight, 2 * kept(blocks));
}

BlockCounts StageMemory::blocks_of(int stage, int part) const {
  return blocks_of_chunk(input_.model, strategy_, chunk_of(shape_, stage, part));
}

BlockCounts StageMemory::blocks_of(int stage) const {
  if (are_alike_) return alike_;
  BlockCounts blocks;
  for (int part = 0; part < parts_; ++part)
    blocks += blocks_of(stage, part);
  return blocks;
}

// ZB-V comes back to the first stage; DualPipe has the model there and back.
bool StageMemory::has_output_layer(int stage) const {
  const bool is_last = stage == strategy_.pp - 1;
  if (strategy_.schedule == PipelineSchedule::kZbV) return stage == 0;
  return is_last || (stage == 0 && strategy_.schedule == PipelineSchedule::kDualPipe);
}

int StageMemory::tables(int stage) const {
  const bool is_last = stage == strategy_.pp - 1;
  const bool embeds = stage == 0 ||
                      (is_last && strategy_.schedule == PipelineSchedule::kDualPipe) ||
                      (has_output_layer(stage) && input_.model.mtp_layers > 0);
  const int both = (embeds ? 1 : 0) + (has_output_layer(stage) ? 1 : 0);
  return input_.model.tied_embeddings ? std::min(both, 1) : both;
}

cost::RankParameters StageMemory::parameters(const BlockCounts& blocks, int tables) const {
  cost::RankParameters held;
  for (int kind = 0; kind < workload::kBlockKinds; ++kind) {
    const cost::RankParameters& block = at(work_.blocks, kind).parameters;
    held.plain += block.plain * blocks[kind];
    held.experts += block.experts * blocks[kind];
    held.frozen_plain += block.frozen_plain * blocks[kind];
    held.frozen_experts += block.frozen_experts * blocks[kind];
    held.largest_block = std::max(held.largest_block, block.largest_block);
  }
  held.plain += tables * work_.table;
  if (work_.is_frozen) held.frozen_plain += tables * work_.table;
  return held;
}

cost::GpuMemory StageMemory::of(int stage) const {
  return of(stage, blocks_of(stage));
}

cost::GpuMemory StageMemory::of(int stage, const BlockCounts& blocks) const {
  cost::GpuMemory memory = gpu_state_memory(input_.stack, parameters(blocks, tables(stage)),
                                            strategy_, input_.precision);
  double block = 0;
  for (int kind = 0; kind < workload::kBlockKinds; ++kind)
    if (kind != workload::kPredictionKind || blocks[kind] > 0)
      block = std::max(block, at(work_.blocks, kind).memory.working);
  memory.working += std::max(block, has_output_layer(stage) ? work_.logits : 0.0);
  const double parts_in_flight = pipeline::peak_activations(shape_, stage);
  const double kept_in_flight = kept(blocks) * parts_in_flight / parts_;
  memory.activations = held(blocks, kept_in_flight) + parts_in_flight * output();
  return memory;
}

// Along the stages what is in flight only falls, or only rises for ZB-V, so that of stages with the
// same blocks the first, or the last, holds most; the first and the last have tables and logits.
StageMemory::Worst StageMemory::worst() const {
  Worst worst{.stage = 0, .memory = of(0)};
  const auto consider = [&](int stage) {
    if (stage <= 0 || stage >= strategy_.pp) return;
    const cost::GpuMemory memory = of(stage);
    if (memory.total() > worst.memory.total()) worst = {.stage = stage, .memory = memory};
  };
  consider(strategy_.pp - 1);
  if (strategy_.pp <= 2 || are_alike_) return worst;
  if (!are_stages_alike(input_.model)) {
    for (int stage = 1; stage + 1 < strategy_.pp; ++stage)
      consider(stage);
    return worst;
  }
  const int first = workload::first_larger_part(input_.model, chunks_);
  const int dense = workload::dense_layers(input_.model);
  if (dense == 0 || dense == input_.model.layers) {
    if (strategy_.schedule != PipelineSchedule::kZbV) consider(first_larger(first));
    return worst;
  }
  // Kinds of blocks differ: where they, and larger chunks, begin and end.
  consider(1);
  consider(strategy_.pp - 2);
  for (const int chunk : {first, first + input_.model.layers % chunks_,
                          workload::part_of_layer(input_.model, chunks_, dense)}) {
    for (const int one : {chunk - 1, chunk, chunk + 1})
      if (one >= 0 && one < chunks_) consider(stage_of_chunk(shape_, one));
  }
  return worst;
}

StageMemory::Worst StageMemory::worst_of(const std::vector<int>& stages) const {
  Worst worst{.stage = stages.front(), .memory = of(stages.front())};
  for (const int stage : stages) {
    const cost::GpuMemory memory = of(stage);
    if (memory.total() > worst.memory.total()) worst = {.stage = stage, .memory = memory};
  }
  return worst;
}

// Larger chunks lie in the middle of the model. DualPipe's middle stages hold two of them; where
// the larger ones of interleaved stages reach around to the first, that is of them.
int StageMemory::first_larger(int chunk) const {
  return strategy_.schedule == PipelineSchedule::kDualPipe ? strategy_.pp / 2 - 1
                                                           : chunk % strategy_.pp;
}

// The first stage holds the mean of the blocks, rounded down, and a table; else another one holds
// more than the mean.
double StageMemory::least() const {
  if (!are_stages_alike(input_.model)) return 0;
  workload::Strategy sharing = strategy_;
  sharing.zero = 3;
  sharing.shard_ranks = 0;
  sharing.offload = Offload::kBoth;
  const double in_flight = std::min({micro_batches_, strategy_.pp, 2});
  const auto memory = [&](const BlockCounts& blocks, int tables) {
    const cost::GpuMemory state =
        gpu_state_memory(input_.stack, parameters(blocks, tables), sharing, input_.precision);
    return state.weights + state.gradients + state.context + kept(blocks) * in_flight;
  };
  const double mean = static_cast<double>(input_.model.layers) / strategy_.pp;
  const double few = std::max(1.0, std::floor(mean));
  const double dense = std::min<double>(workload::dense_layers(input_.model), few);
  const double first = memory(dense_and_expert_blocks(dense, few - dense), 1);
  // The kind that holds less, of those that the model has.
  double other = first;
  if (workload::dense_layers(input_.model) > 0)
    other = std::min(other, memory(dense_and_expert_blocks(std::ceil(mean), 0), 0));
  if (has_experts(input_.model))
    other = std::min(other, memory(dense_and_expert_blocks(0, std::ceil(mean)), 0));
  return other;
}

}  // namespace regatta::plan
