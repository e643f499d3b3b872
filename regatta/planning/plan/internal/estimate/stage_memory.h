// plan/internal/estimate/stage_memory.h: what a device of each pipeline stage holds at its worst
// moment, in closed form. In flight: pipeline/closed_form.h, peak_activations().
#pragma once

#include <vector>

#include "regatta/model/cost/memory.h"
#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/internal/estimate/stage_blocks.h"

namespace regatta::plan {

// The arguments outlive it.
class StageMemory {
 public:
  StageMemory(const EstimateInput& input, const MicroBatchWork& work, int micro_batches);

  // Where the parts of a stage hold different blocks, of each as much in flight as of the others.
  cost::GpuMemory of(int stage) const;
  // The same for a stage that holds these blocks.
  cost::GpuMemory of(int stage, const workload::BlockCounts& blocks) const;

  // A stage that holds most where the split is even, found by asking a dozen of them at most where
  // the stages are alike.
  struct Worst {
    int stage = 0;
    cost::GpuMemory memory;
  };
  Worst worst() const;
  // The stage of `stages`, at least one, that holds most.
  Worst worst_of(const std::vector<int>& stages) const;

  // Not above the worst stage's whatever the schedule, sharing and offload, of every split whose
  // first stage holds no fewer layers than in the even one.
  double least() const;

  // The memory that a micro-batch holds on a part until its last gradient: `kept`, unless it is
  // offloaded, and `output`.
  double kept(const workload::BlockCounts& blocks) const;
  double output() const;
  // The part that the device holds of `kept_in_flight`, that of all parts of a stage with these
  // blocks.
  double held(const workload::BlockCounts& blocks, double kept_in_flight) const;

  workload::BlockCounts blocks_of(int stage) const;  // all parts
  workload::BlockCounts blocks_of(int stage, int part) const;
  const pipeline::PipelineShape& shape() const { return shape_; }

  // Token tables: of the embedding and of the output layer, which share one where they meet and the
  // model ties them. Modules that predict embed the tokens again (Megatron-Core keeps a copy of the
  // table on their stage).
  int tables(int stage) const;

  // The parameters of a rank of a stage with these blocks and token tables.
  cost::RankParameters parameters(const workload::BlockCounts& blocks, int tables) const;

 private:
  int first_larger(int chunk) const;
  bool has_output_layer(int stage) const;

  const EstimateInput& input_;
  const workload::Strategy& strategy_;
  const MicroBatchWork& work_;
  int micro_batches_;
  pipeline::PipelineShape shape_;
  int parts_;  // of a stage
  int chunks_;
  bool are_alike_ = false;  // all stages hold `alike_`
  workload::BlockCounts alike_;
};

}  // namespace regatta::plan
