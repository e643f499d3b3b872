// plan/internal/search/stage_split.h: stages of equal devices that hold different numbers of
// blocks: which of them decide a step, and the split whose slowest stage is fastest.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/internal/estimate/stage_blocks.h"

namespace regatta::plan {

// strategy.stage_layers as the closed form sees them.
struct StageSplit {
  std::vector<workload::BlockCounts>
      blocks;                // by stage; with dualpipe, half of the two parts it holds
  int slowest = 0;           // with the output layer and the loss, where it has them
  int heaviest = 0;          // has the most parameters
  std::vector<int> fullest;  // one of them needs the most memory, whatever is shared
  // All micro-batches through the stages without messages, where pipeline/uneven_stages.h has it
  // exactly.
  std::optional<Seconds> makespan;
};

// Cost: linear in the parts of the model, where its kinds of blocks are mixed in its layers, but
// that of `makespan`.
StageSplit stage_split(const EstimateInput& input, const MicroBatchWork& work, int micro_batches);

// DualPipe's purpose: the exchange of experts' tokens of one micro-batch goes beside the
// computation of another, which leaves it 20 of 132 processors (DeepSeek-V3, section 3.2.2).
// `slot`: what a stage does for a micro-batch.
void overlap_exchanges(StepBreakdown& slot);

// The stage with the output layer and the loss.
int output_stage(const workload::Strategy& strategy);
// Token tables of a stage: the first embeds with one, and so do modules that predict; the output
// layer has its own but where both are on one stage and tied; with dualpipe of one of its two parts
// (plan/internal/estimate/stage_memory.h: of both).
int tables_of(const EstimateInput& input, int stage);

// Layers of the stages so that the slowest is as fast as it can be beside an output layer on the
// last, which then holds fewer; the stages before hold what is over. Nothing where that is no
// faster than the even split, and for zb-v and dualpipe, which have both ends of the model on one
// stage. The first stage never holds fewer than in the even split. Cost: linear in the stages.
std::vector<int> balanced_layers(const EstimateInput& input, const MicroBatchWork& work);

// The time of the slowest stage for a micro-batch with balanced layers, for any number of parts a
// stage; nothing where no schedule has them balanced.
std::optional<Seconds> balanced_slot(const EstimateInput& input, const MicroBatchWork& work);
// The lower bound of that time over all splits of the layers, without the exchange of experts'
// tokens, which a schedule may hide.
Seconds mean_slot(const EstimateInput& input, const MicroBatchWork& work);

}  // namespace regatta::plan
