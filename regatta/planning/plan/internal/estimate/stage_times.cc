#include "regatta/planning/plan/internal/estimate/stage_times.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "regatta/base/core/ids.h"

namespace regatta::plan {

using workload::BlockCounts;
using workload::dense_and_expert_blocks;

// The remainder of blocks goes to the middle stages (workload::stage_layers), so the ends hold the
// fewest; blocks without experts are the first of the model.
double StageTimes::fewest_blocks() const {
  return std::max(1.0, std::floor(layers() / strategy_.pp));
}

double StageTimes::most_blocks() const {
  return std::ceil(layers() / strategy_.pp);
}

BlockCounts StageTimes::first_stage() const {
  const double blocks = strategy_.pp > 2 ? fewest_blocks() : most_blocks();
  const double dense = std::min<double>(dense_layers(input_.model), blocks);
  return dense_and_expert_blocks(dense, blocks - dense);
}

BlockCounts StageTimes::other_stage(double blocks) const {
  if (strategy_.pp == 1) return first_stage();
  return has_experts(input_.model) ? dense_and_expert_blocks(0, blocks)
                                   : dense_and_expert_blocks(blocks, 0);
}

const BlockCounts& StageTimes::of_stage(int stage) const {
  return at(split_->blocks, stage);
}

BlockCounts StageTimes::heaviest_blocks() const {
  return split_ != nullptr ? of_stage(split_->heaviest) : other_stage(most_blocks());
}

BlockCounts StageTimes::slowest_blocks() const {
  return split_ != nullptr ? of_stage(split_->slowest) : heaviest_blocks();
}

bool StageTimes::has_output(int stage) const {
  return stage == output_stage(strategy_);
}

StageTime stage_time(const MicroBatchWork& work, const BlockCounts& blocks, bool has_output) {
  StageTime stage;
  for (int kind = 0; kind < workload::kBlockKinds; ++kind) {
    if (blocks[kind] <= 0) continue;
    const BlockWork& block = at(work.blocks, kind);
    StepBreakdown time = block.time;
    time *= blocks[kind];
    stage.all += time;
    stage.forward += block.forward * blocks[kind];
    stage.weight_gradient += block.weight_gradient * blocks[kind];
  }
  if (!has_output) return stage;
  stage.all += work.embedding_and_head;
  stage.forward += work.embedding_and_head.total() / 3;
  return stage;
}

StageTime StageTimes::slowest() const {
  if (split_ != nullptr) {
    return time_of(of_stage(split_->slowest), has_output(split_->slowest));
  }
  const StageTime last = time_of(other_stage(fewest_blocks()), true);
  if (strategy_.pp == 1) return last;
  const StageTime middle = time_of(heaviest_blocks());
  return last.all.total() > middle.all.total() ? last : middle;
}

// The sum of the stages beside the slowest.
StageTime StageTimes::other_stages() const {
  BlockCounts rest = of_stage(split_->slowest);
  rest *= -1;
  rest += all_blocks(input_.model);
  return time_of(rest, !has_output(split_->slowest));
}

StagePartTime StageTimes::mean_part(double parts) const {
  const StageTime stage = split_ != nullptr ? other_stages() : time_of(heaviest_blocks());
  const double mean =
      (split_ != nullptr ? 1.0 / (strategy_.pp - 1) : layers() / strategy_.pp / most_blocks()) /
      parts;
  return {.all = stage.all.total() * mean,
          .forward = stage.forward * mean,
          .weight_gradient = stage.weight_gradient * mean};
}

bool needs_split(const EstimateInput& input) {
  return !input.strategy.stage_layers.empty() || !are_stages_alike(input.model);
}

StageTime slowest_stage(const EstimateInput& input, const MicroBatchWork& work, int micro_batches) {
  std::optional<StageSplit> split;
  if (needs_split(input)) split = stage_split(input, work, micro_batches);
  return slowest_slot(input, StageTimes(input, work, split ? &*split : nullptr));
}

StageTime slowest_slot(const EstimateInput& input, const StageTimes& times) {
  StageTime slot = times.slowest();
  if (input.strategy.schedule == workload::PipelineSchedule::kDualPipe) overlap_exchanges(slot.all);
  return slot;
}

}  // namespace regatta::plan
