// plan/internal/estimate/stage_times.h: the times of pipeline stages for a micro-batch: of the
// slowest, which sets the pace of the pipeline, and of the others.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/internal/estimate/stage_blocks.h"
#include "regatta/planning/plan/internal/search/stage_split.h"

namespace regatta::plan {

// The times of one stage for a micro-batch.
struct StageTime {
  StepBreakdown all;
  Seconds forward;
  Seconds weight_gradient;
};

// A stage of these blocks; with the output layer and the loss as well, a third of them forward.
StageTime stage_time(const MicroBatchWork& work, const workload::BlockCounts& blocks,
                     bool has_output);

// The times of a part of a stage, of which a stage may have several.
struct StagePartTime {
  Seconds all;
  Seconds forward;
  Seconds weight_gradient;
};

// The slowest stage with what its schedule hides; its split is that of the strategy.
StageTime slowest_stage(const EstimateInput& input, const MicroBatchWork& work, int micro_batches);
// The same where its times are known.
class StageTimes;
StageTime slowest_slot(const EstimateInput& input, const StageTimes& times);

// Whether stages hold what no closed form says.
bool needs_split(const EstimateInput& input);

// `split`: null for the even split of a model whose stages are alike. The arguments outlive it.
class StageTimes {
 public:
  StageTimes(const EstimateInput& input, const MicroBatchWork& work, const StageSplit* split)
      : input_(input), strategy_(input.strategy), work_(work), split_(split) {}

  // A middle stage, or the one with the output layer.
  StageTime slowest() const;
  // The blocks whose activations the slowest stage offloads: with an even split, the heaviest.
  workload::BlockCounts slowest_blocks() const;
  // The blocks of the stage with the most parameters.
  workload::BlockCounts heaviest_blocks() const;
  // A part of a stage beside the slowest, `parts` a stage: the mean of the model; where layers are
  // given, the mean of all but the slowest stage.
  StagePartTime mean_part(double parts) const;

 private:
  double layers() const { return input_.model.layers; }
  double fewest_blocks() const;
  double most_blocks() const;
  workload::BlockCounts first_stage() const;
  workload::BlockCounts other_stage(double blocks) const;
  const workload::BlockCounts& of_stage(int stage) const;
  bool has_output(int stage) const;
  StageTime time_of(const workload::BlockCounts& blocks, bool has_output = false) const {
    return stage_time(work_, blocks, has_output);
  }
  StageTime other_stages() const;

  const EstimateInput& input_;
  const workload::Strategy& strategy_;
  const MicroBatchWork& work_;
  const StageSplit* split_;
};

}  // namespace regatta::plan
