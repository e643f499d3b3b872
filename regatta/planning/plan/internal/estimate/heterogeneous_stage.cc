// The time, the memory and the update of a stage of given blocks.
#include <algorithm>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/closed_form.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_job.h"
#include "regatta/planning/plan/internal/estimate/replica_communication.h"

namespace regatta::plan {

using cost::Collective;
using workload::BlockCounts;

MicroBatchBreakdown micro_batch_breakdown(const HeterogeneousJob& job, const MicroBatchWork& work,
                                          int stage, const BlockCounts& blocks) {
  MicroBatchBreakdown slot;
  for (int kind = 0; kind < workload::kBlockKinds; ++kind) {
    if (blocks[kind] <= 0) continue;
    const BlockWork& block = at(work.blocks, kind);
    StepBreakdown time = block.time;
    time *= blocks[kind];
    slot.all += time;
    slot.forward += block.forward * blocks[kind];
  }
  if (stage == job.strategy.pp - 1) {
    slot.all += work.embedding_and_head;
    slot.forward += work.embedding_and_head.total() / 3;
  }
  return slot;
}

cost::RankParameters stage_parameters(const HeterogeneousJob& job, int stage,
                                      const BlockCounts& blocks) {
  const MicroBatchWork& work = job.stage_group(stage).work;
  cost::RankParameters rank;
  for (int kind = 0; kind < workload::kBlockKinds; ++kind) {
    rank.plain += at(work.blocks, kind).parameters.plain * blocks[kind];
    rank.experts += at(work.blocks, kind).parameters.experts * blocks[kind];
  }
  const int last = job.strategy.pp - 1;
  const bool is_both = last == 0 && !job.model.tied_embeddings;
  if (stage == 0 || stage == last) rank.plain += is_both ? 2 * work.table : work.table;
  return rank;
}

cost::GpuMemory stage_memory(const HeterogeneousJob& job, int stage, const BlockCounts& blocks,
                             int micro_batches) {
  const MicroBatchWork& work = job.stage_group(stage).work;
  const cost::RankParameters held = stage_parameters(job, stage, blocks);
  cost::GpuMemory memory = gpu_state_memory(job.stack, held, job.strategy, job.precision);
  const int stages = job.strategy.pp;
  const double in_flight =
      pipeline::peak_activations({.stages = stages, .micro_batches = micro_batches}, stage);
  double kept = 0;
  double block = 0;
  for (int kind = 0; kind < workload::kBlockKinds; ++kind) {
    const cost::BlockMemory& own = at(work.blocks, kind).memory;
    kept += own.kept * blocks[kind];
    block = std::max(block, own.working);
  }
  if (stages > 1) kept += work.output;
  memory.activations = kept * in_flight;
  memory.working += std::max(block, stage == stages - 1 ? work.logits : 0.0);
  return memory;
}

StageUpdate stage_update(const HeterogeneousJob& job, int stage, const BlockCounts& blocks,
                         int micro_batches) {
  const HeterogeneousGroup& group = job.stage_group(stage);
  const workload::Strategy& strategy = job.strategy;
  const cost::StackTraits& traits = job.stack.traits;
  const cost::RankParameters held = stage_parameters(job, stage, blocks);
  const double updated = cost::updated_parameters(strategy, held);
  const double kept = cost::shares_gradients(strategy) ? updated : held.total();
  const double added = traits.accumulated_bytes * kept * micro_batches;
  StageUpdate end;
  end.optimizer = Seconds{added / group.machine.engines.scores.memory.value} +
                  gpu_optimizer_time(group.machine.engines, updated);
  if (strategy.dp == 1) return end;
  const cost::ServerNetwork& network = group.machine.network;
  const auto exchange = [&](Collective kind, double bytes) {
    const cost::RankGroup ranks{
        .ranks = strategy.dp,
        .inside = std::max(1, std::min(strategy.dp, network.devices / strategy.tp)),
        .rings = std::min(strategy.tp, network.devices),
        .extent = strategy.dp * strategy.tp};
    return collective_time(network, ranks, kind, held.total() * bytes);
  };
  const MicroBatchBreakdown slot = micro_batch_breakdown(job, group.work, stage, blocks);
  const Seconds backward = slot.all.total() - slot.forward;
  const double overlap = strategy.overlap ? traits.dp_overlap : 0;
  const GradientSum sum = gradient_sum(traits, strategy, job.precision, micro_batches);
  const HidingPasses passes = hiding_passes(strategy, sum, micro_batches);
  end.sums = exposed(exchange(sum.kind, sum.bytes), backward, overlap) * passes.backwards;
  if (strategy.zero > 0) {
    const double weight = bytes_per_element(job.precision);
    end.sums +=
        exposed(exchange(Collective::kAllGather, weight), slot.forward, overlap) * passes.forwards;
  }
  return end;
}

}  // namespace regatta::plan
