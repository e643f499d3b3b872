#include "regatta/planning/plan/stage_timeline.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/model/pipeline/pipeline_simulation.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_job.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_pipeline.h"
#include "regatta/planning/plan/internal/estimate/stage_blocks.h"
#include "regatta/planning/plan/internal/estimate/stage_timeline_memory.h"

namespace regatta::plan {
namespace {

using pipeline::PartTimes;
using pipeline::PassKind;
using pipeline::PipelineShape;
using workload::Phase;
using workload::PipelineSchedule;

struct ChunkTimes {
  PartTimes times;
  Seconds recompute;
};

class Chunks {
 public:
  Chunks(const EstimateInput& input, const PipelineShape& shape, const MicroBatchWork& work,
         Seconds message)
      : input_(input), count_(chunk_count(shape)), work_(work), message_(message) {}

  // All of it `stretch` times as long.
  ChunkTimes times(int chunk, double stretch) const {
    const workload::BlockCounts blocks = blocks_of_chunk(input_.model, input_.strategy, chunk);
    ChunkTimes sum;
    for (int kind = 0; kind < workload::kBlockKinds; ++kind)
      add(sum, at(work_.blocks, kind), blocks[kind]);
    if (chunk == count_ - 1) {
      // As the estimate has it: the embedding, the output layer and the loss, a third forward.
      const Seconds ends = work_.embedding_and_head.total();
      sum.times.forward += ends / 3;
      sum.times.input_gradient += ends / 1.5;
    }
    sum.times.forward += message_;
    sum.times.input_gradient += message_;
    for (Seconds* time : {&sum.times.forward, &sum.times.input_gradient, &sum.times.weight_gradient,
                          &sum.recompute})
      *time = *time * stretch;
    return sum;
  }

  bool are_equal() const {
    const int dense = workload::dense_layers(input_.model);
    const std::vector<int>& given = input_.strategy.stage_layers;
    const bool divides = given.empty() ? input_.model.layers % count_ == 0
                                       : std::equal(given.begin() + 1, given.end(), given.begin());
    return count_ == 1 || (divides && are_stages_alike(input_.model) &&
                           (dense == 0 || dense == input_.model.layers));
  }

 private:
  static void add(ChunkTimes& sum, const BlockWork& block, double blocks) {
    sum.times.forward += block.forward * blocks;
    sum.times.weight_gradient += block.weight_gradient * blocks;
    sum.times.input_gradient +=
        (block.time.total() - block.forward - block.weight_gradient) * blocks;
    sum.recompute += block.time.recompute * blocks;
  }

  const EstimateInput& input_;
  int count_;
  const MicroBatchWork& work_;
  Seconds message_;  // before a forward, or an input gradient
};

StageWork work_of(PassKind kind) {
  switch (kind) {
    case PassKind::kForward:
      return StageWork::kForward;
    case PassKind::kBackward:
      return StageWork::kBackward;
    case PassKind::kInputGradient:
      return StageWork::kInputGradient;
    case PassKind::kWeightGradient:
      break;
  }
  return StageWork::kWeightGradient;
}

bool computes_again(StageWork work) {
  return work == StageWork::kBackward || work == StageWork::kInputGradient;
}

// `chunks` are those of the stage's parts.
std::vector<StageSpan> row_of(const std::vector<pipeline::Pass>& pieces,
                              const std::vector<pipeline::PassInterval>& spans,
                              std::span<const ChunkTimes> chunks, Seconds message) {
  std::vector<StageSpan> row;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const pipeline::Pass& piece = pieces[i];
    const ChunkTimes& chunk = at(chunks, piece.part);
    StageSpan span{.work = work_of(piece.kind),
                   .part = piece.part,
                   .micro_batch = piece.micro_batch,
                   .overlaps_next = piece.overlaps_next,
                   .start = spans[i].start,
                   .end = spans[i].end,
                   .message = {},
                   .recompute = {}};
    if (piece.overlaps_next) span.end = span.start + chunk.times.forward;
    if (i > 0 && pieces[i - 1].overlaps_next) span.start = row.back().end;
    if (span.work != StageWork::kWeightGradient) span.message = message;
    if (computes_again(span.work)) span.recompute = chunk.recompute;
    row.push_back(span);
  }
  return row;
}

// The work behind the last gradients: a stage sums its own as soon as it has them, the optimizer
// waits for all, since it scales by the norm of all gradients.
void add_ends(StageTimeline& timeline) {
  const StepBreakdown& step = timeline.estimate.step;
  const Seconds update = timeline.pipeline_end + step.dp_comm;
  timeline.makespan = update + step.optimizer + step.offload;
  for (auto& row : timeline.rows) {
    const auto add = [&](StageWork work, Seconds start, Seconds duration) {
      StageSpan span{
          .work = work, .start = start, .end = start + duration, .message = {}, .recompute = {}};
      if (duration > Seconds{}) row.push_back(span);
    };
    add(StageWork::kReduction, row.back().end, step.dp_comm);
    add(StageWork::kOptimizer, update, step.optimizer);
    add(StageWork::kOffload, update + step.optimizer, step.offload);
  }
}

// Cuts spans into phases and puts the pauses between them.
class Phases {
 public:
  workload::Timeline of(const StageTimeline& timeline) {
    for (std::size_t stage = 0; stage < timeline.rows.size(); ++stage) {
      rank_ = Rank{static_cast<int>(stage)};
      at_ = {};
      for (const StageSpan& span : timeline.rows[stage])
        add(span);
      fill(Phase::kBubble, timeline.makespan, -1);
    }
    return std::move(phases_);
  }

 private:
  void add(const StageSpan& span) {
    fill(Phase::kBubble, span.start, -1);
    fill(Phase::kPpComm, span.start + span.message, span.micro_batch);
    fill(Phase::kRecompute, span.start + span.message + span.recompute, span.micro_batch);
    fill(phase_of(span.work), span.end, span.micro_batch);
  }

  static Phase phase_of(StageWork work) {
    switch (work) {
      case StageWork::kForward:
        return Phase::kForward;
      case StageWork::kBackward:
      case StageWork::kInputGradient:
      case StageWork::kWeightGradient:
        return Phase::kBackward;
      case StageWork::kReduction:
        return Phase::kDpComm;
      case StageWork::kOptimizer:
        return Phase::kOptimizer;
      case StageWork::kOffload:
        break;
    }
    return Phase::kOther;
  }

  // The row from where it is to `end`.
  void fill(Phase phase, Seconds end, int micro_batch) {
    if (end <= at_) return;
    phases_.push_back({.rank = rank_,
                       .phase = phase,
                       .micro_batch = micro_batch,
                       .start = at_,
                       .duration = end - at_});
    at_ = end;
  }

  workload::Timeline phases_;
  Rank rank_;
  Seconds at_;
};

// A pipeline that was simulated: the times of its chunks, by stage and part, and of the message
// that a pass waits for, by stage.
struct SimulatedPipeline {
  const PipelineShape& shape;
  const pipeline::PipelineOrder& order;
  const pipeline::PipelineSimulation& simulation;
  const std::vector<ChunkTimes>& chunks;
  std::vector<Seconds> messages;
};

// Without its memory.
StageTimeline timeline_of(const SimulatedPipeline& pipeline, const Estimate& estimate) {
  StageTimeline timeline{.schedule = pipeline.shape.schedule,
                         .micro_batches = pipeline.shape.micro_batches,
                         .rows = {},
                         .pipeline_end = pipeline.simulation.makespan,
                         .makespan = {},
                         .has_equal_stages = false,
                         .memory = {},
                         .estimate = estimate};
  const auto parts = static_cast<std::size_t>(pipeline::parts_of(pipeline.shape));
  for (std::size_t stage = 0; stage < pipeline.order.size(); ++stage)
    timeline.rows.push_back(row_of(pipeline.order[stage], pipeline.simulation.spans[stage],
                                   std::span(pipeline.chunks).subspan(stage * parts),
                                   pipeline.messages[stage]));
  add_ends(timeline);
  return timeline;
}

Status check_pass_count(const PipelineShape& shape) {
  const int parts = pipeline::parts_of(shape);
  const long long pieces = 2LL * shape.stages * shape.micro_batches * parts;
  if (pieces <= kMaxTimelinePasses) return {};
  return Error{Code::kInvalidInput,
               fmt::format("timeline: {} stages x {} micro-batches x {} parts, there and back, are "
                           "{} pieces of work, and at most {} are drawn; choose a smaller "
                           "global_batch, a larger micro_batch or fewer stages",
                           shape.stages, shape.micro_batches, parts, pieces, kMaxTimelinePasses)};
}

}  // namespace

Result<StageTimeline> stage_timeline(const EstimateInput& input) {
  return stage_timeline(input, machine_model(input));
}

Result<StageTimeline> stage_timeline(const EstimateInput& input, const MachineModel& machine) {
  REGATTA_TRY(count, workload::micro_batches(input.model, input.strategy, input.global_batch));
  REGATTA_TRY_DO(check_machine_model(machine, input.server.device, input.precision));
  const MicroBatchWork blocks = micro_batch_work(input, machine);
  const Estimate estimate = assemble_estimate(input, machine, blocks, count);
  const PipelineShape shape{.schedule = input.strategy.schedule,
                            .stages = input.strategy.pp,
                            .micro_batches = count,
                            .virtual_stages = input.strategy.virtual_stages};
  REGATTA_TRY_DO(check_pass_count(shape));
  REGATTA_TRY(order, pipeline::pipeline_order(shape));
  const int parts = pipeline::parts_of(shape);
  // The estimate has the messages of a micro-batch there and back, on every part that it meets.
  const int met = shape.schedule == PipelineSchedule::kDualPipe ? 1 : parts;
  const Seconds message = estimate.step.pp_comm / (2.0 * count * met);
  const Chunks chunks(input, shape, blocks, message);

  // All wait for the slowest server: the pipeline as a whole takes that much longer.
  const StepBreakdown& step = estimate.step;
  const Seconds pipeline =
      step.total() - step.dp_comm - step.optimizer - step.offload - step.stragglers;
  const double stretch = 1 + step.stragglers / pipeline;

  pipeline::PipelineTimes times = pipeline::equal_times(shape, {}, {});
  std::vector<ChunkTimes> work;
  for (std::size_t i = 0; i < times.parts.size(); ++i) {
    const int place = static_cast<int>(i);
    work.push_back(chunks.times(chunk_of(shape, place / parts, place % parts), stretch));
    times.parts[i] = work.back().times;
  }
  REGATTA_TRY(simulation, pipeline::simulate_pipeline(shape, order, times));

  StageTimeline timeline = timeline_of(
      {shape, order, simulation, work, std::vector<Seconds>(order.size(), message)}, estimate);
  timeline.has_equal_stages = chunks.are_equal();
  timeline.memory = memory_over_time(timeline, StageMemory(input, blocks, count));
  return timeline;
}

Result<StageTimeline> heterogeneous_timeline(const HeterogeneousJob& job,
                                             const HeterogeneousSplit& split) {
  const HeterogeneousEstimate estimate = estimate_heterogeneous(job, split);
  const int replica = estimate.slowest_replica;
  const PipelineShape shape{.stages = job.strategy.pp,
                            .micro_batches = at(split.micro_batches, replica)};
  REGATTA_TRY_DO(check_pass_count(shape));
  REGATTA_TRY(order, pipeline::pipeline_order(shape));
  const auto blocks = stage_block_counts(job.model, split.layers);
  const std::vector<MicroBatchTime> slots = micro_batch_times(job, blocks, replica);
  const StepBreakdown& step = estimate.step;
  const Seconds pipeline =
      step.total() - step.dp_comm - step.optimizer - step.offload - step.stragglers;
  const double stretch = 1 + step.stragglers / pipeline;
  pipeline::PipelineTimes times = pipeline::equal_times(shape, {}, {});
  std::vector<ChunkTimes> work;
  std::vector<Seconds> messages;
  for (int stage = 0; stage < shape.stages; ++stage) {
    const MicroBatchTime& slot = at(slots, stage);
    const MicroBatchWork& done = job.tensor_group(stage, replica).work;
    const StepBreakdown parts = micro_batch_breakdown(job, done, stage, at(blocks, stage)).all;
    work.push_back(
        {.times = {.forward = slot.forward * stretch, .input_gradient = slot.backward * stretch},
         .recompute = parts.recompute * stretch});
    messages.push_back(job.messages_of(stage, replica, parts.matmul) * 0.5);
    times.parts[static_cast<std::size_t>(stage)] = work.back().times;
  }
  REGATTA_TRY(simulation, pipeline::simulate_pipeline(shape, order, times));
  StageTimeline timeline = timeline_of(
      {shape, order, simulation, work, messages},
      {.step = step, .memory = estimate.worst().memory, .worst_stage = estimate.worst_stage});
  HeterogeneousJob laid_out = job;
  laid_out.strategy.stage_layers = split.layers;
  for (int stage = 0; stage < shape.stages; ++stage) {
    const HeterogeneousGroup& group = job.stage_group(stage);
    const EstimateInput input = estimate_input(laid_out, group);
    const StageMemory memory(input, group.work, shape.micro_batches);
    timeline.memory.push_back(at(memory_over_time(timeline, memory), stage));
  }
  return timeline;
}

double timeline_difference(const StageTimeline& timeline) {
  return timeline.makespan / timeline.estimate.step.total() - 1;
}

workload::Timeline phases_of(const StageTimeline& timeline) {
  return Phases().of(timeline);
}

}  // namespace regatta::plan
