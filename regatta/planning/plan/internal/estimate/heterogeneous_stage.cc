// The time, the memory and the update of a stage of given blocks.
#include "regatta/planning/plan/internal/estimate/heterogeneous_job.h"
#include "regatta/planning/plan/internal/estimate/optimizer_time.h"
#include "regatta/planning/plan/internal/estimate/replica_communication.h"
#include "regatta/planning/plan/internal/estimate/stage_memory.h"

namespace regatta::plan {

using workload::BlockCounts;

StageTime micro_batch_breakdown(const HeterogeneousJob& job, const MicroBatchWork& work, int stage,
                                const BlockCounts& blocks) {
  return stage_time(work, blocks, stage == job.strategy.pp - 1);
}

EstimateInput estimate_input(const HeterogeneousJob& job, const HeterogeneousGroup& group) {
  return {.model = job.model,
          .strategy = job.strategy,
          .global_batch = job.global_batch,
          .precision = job.precision,
          .server = *group.server,
          .stack = job.stack};
}

cost::GpuMemory stage_memory(const HeterogeneousJob& job, int stage, const BlockCounts& blocks,
                             int micro_batches) {
  const HeterogeneousGroup& group = job.stage_group(stage);
  const EstimateInput input = estimate_input(job, group);
  return StageMemory(input, group.work, micro_batches).of(stage, blocks);
}

StageUpdate stage_update(const HeterogeneousJob& job, int stage, const BlockCounts& blocks,
                         int micro_batches) {
  const HeterogeneousGroup& group = job.stage_group(stage);
  const EstimateInput input = estimate_input(job, group);
  const StageMemory memory(input, group.work, micro_batches);
  const cost::RankParameters held = memory.parameters(blocks, memory.tables(stage));
  const StageTime slot = micro_batch_breakdown(job, group.work, stage, blocks);
  const ReplicaCommunication replicas(input, group.machine, held, micro_batches);
  const OffloadedActivations activations{.bytes = memory.kept(blocks),
                                         .forward = slot.forward,
                                         .backward = slot.all.total() - slot.forward};
  return {.sums = replicas.exposed_beside(slot.all.total(), slot.forward),
          .optimizer = optimizer_time(input, group.machine, held, micro_batches),
          .offload = optimizer_offload_time(input, group.machine, held) +
                     activation_offload_time(input, group.machine, activations) * micro_batches};
}

}  // namespace regatta::plan
