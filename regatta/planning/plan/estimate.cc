#include "regatta/planning/plan/estimate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/closed_form.h"
#include "regatta/planning/plan/internal/estimate/replica_communication.h"
#include "regatta/planning/plan/internal/estimate/stage_memory.h"
#include "regatta/planning/plan/internal/search/stage_split.h"

namespace regatta::plan {
namespace {

using workload::Offload;
using workload::PipelineSchedule;

// The times of one stage for a micro-batch.
struct StageTime {
  StepBreakdown all;
  Seconds forward;
  Seconds weight_gradient;
};

class Assembly {
 public:
  Assembly(const EstimateInput& input, const MachineModel& machine, const MicroBatchWork& work,
           int micro_batches, const StageSplit* split)
      : input_(input),
        strategy_(input.strategy),
        traits_(input.stack.traits),
        machine_(machine),
        work_(work),
        micro_batches_(micro_batches),
        split_(split),
        weight_bytes_(bytes_per_element(input.precision)),
        stages_(input, work, micro_batches) {}

  Estimate run() {
    Estimate estimate;
    StageTime slot;
    estimate.step = micro_batches(slot);
    const cost::RankParameters held = heaviest_parameters();
    const ReplicaCommunication replicas(input_, machine_, held, micro_batches_);
    estimate.step.dp_comm = replicas.exposed_beside(slot.all.total(), slot.forward);
    optimizer(estimate.step, held);
    offload(estimate.step, held, slot);
    const StageMemory::Worst worst =
        split_ != nullptr ? stages_.worst_of(split_->fullest) : stages_.worst();
    estimate.memory = worst.memory;
    estimate.worst_stage = worst.stage;
    return estimate;
  }

  // All micro-batches through the pipeline, without what a step does once; `slot` is set to what
  // the slowest stage does for one.
  StepBreakdown micro_batches(StageTime& slot) const {
    slot = slowest_stage();
    if (strategy_.schedule == PipelineSchedule::kDualPipe) overlap_exchanges(slot.all);
    StepBreakdown step = slot.all;
    step.pp_comm = boundary();
    const Seconds fill = bubble(slot.all.total(), step.pp_comm);
    step *= micro_batches_;
    step.bubble = fill;
    const double servers = static_cast<double>(strategy_.world_size()) / machine_.network.devices;
    step.stragglers = straggler_time(step, servers);
    return step;
  }

  StrategyLowerBound bound() const {
    // Which stage decides depends on the schedule, too.
    if (!strategy_.stage_layers.empty()) return {.time = mean_slot(input_, work_) * micro_batches_};
    // DualPipe hides the exchange of experts' tokens.
    const StageTime slot = slowest_stage();
    const Seconds even = slot.all.total() - slot.all.ep_comm;
    const Seconds balanced = balanced_slot(input_, work_).value_or(even);
    return {.time = std::min(even, balanced) * micro_batches_, .memory = stages_.least()};
  }

 private:
  double layers() const { return input_.model.layers; }

  // The remainder of blocks goes to the middle stages (workload::stage_layers), so the ends hold
  // the fewest; blocks without experts are the first of the model.
  double fewest_blocks() const { return std::max(1.0, std::floor(layers() / strategy_.pp)); }
  double most_blocks() const { return std::ceil(layers() / strategy_.pp); }

  StageBlocks first_stage() const {
    const double blocks = strategy_.pp > 2 ? fewest_blocks() : most_blocks();
    const double dense = std::min<double>(dense_layers(input_.model), blocks);
    return {.dense = dense, .expert = blocks - dense};
  }
  StageBlocks other_stage(double blocks) const {
    if (strategy_.pp == 1) return first_stage();
    return has_experts(input_.model) ? StageBlocks{.expert = blocks} : StageBlocks{.dense = blocks};
  }
  StageBlocks last_stage() const { return other_stage(fewest_blocks()); }
  StageBlocks heaviest_stage() const {
    if (split_ != nullptr) return of_stage(split_->heaviest);
    return strategy_.pp == 1 ? first_stage() : other_stage(most_blocks());
  }
  const StageBlocks& of_stage(int stage) const { return at(split_->blocks, stage); }
  bool has_output(int stage) const {
    return stage == (split_ != nullptr ? output_stage(strategy_) : strategy_.pp - 1);
  }

  StageTime time_of(const StageBlocks& blocks) const {
    StageTime stage;
    stage.all = work_.dense.time;
    stage.all *= blocks.dense;
    stage.forward = work_.dense.forward * blocks.dense;
    stage.weight_gradient = work_.dense.weight_gradient * blocks.dense;
    if (blocks.expert > 0) {
      StepBreakdown experts = work_.expert.time;
      experts *= blocks.expert;
      stage.all += experts;
      stage.forward += work_.expert.forward * blocks.expert;
      stage.weight_gradient += work_.expert.weight_gradient * blocks.expert;
    }
    return stage;
  }

  StageTime with_output(StageTime stage) const {
    stage.all += work_.embedding_and_head;
    stage.forward += work_.embedding_and_head.total() / 3;
    return stage;
  }

  // The slowest stage sets the pace of the pipeline: a middle one, or the last with the output
  // layer.
  StageTime slowest_stage() const {
    if (split_ != nullptr) {
      const StageTime slowest = time_of(of_stage(split_->slowest));
      return has_output(split_->slowest) ? with_output(slowest) : slowest;
    }
    const StageTime last = with_output(time_of(last_stage()));
    if (strategy_.pp == 1) return last;
    const StageTime middle = time_of(heaviest_stage());
    return last.all.total() > middle.all.total() ? last : middle;
  }

  // The activations of a micro-batch to the next stage and their gradient back, of every part of
  // the model that the stage holds.
  Seconds boundary() const {
    if (strategy_.pp == 1) return {};
    const int stride = strategy_.world_size() / strategy_.pp;
    const Seconds message =
        cost::message_time(machine_.network, stride, strategy_.pp, work_.boundary);
    return message * (2.0 * parts_met() * (1 - traits_.pp_overlap));
  }

  // Parts of the model that a micro-batch meets on one stage.
  double parts_met() const { return workload::parts_per_stage(strategy_); }

  // All that a pipeline does for a micro-batch on the stages beside the slowest.
  StageTime other_stages() const {
    const StageBlocks& slowest = of_stage(split_->slowest);
    const double dense = dense_layers(input_.model);
    const StageTime others =
        time_of({.dense = dense - slowest.dense, .expert = layers() - dense - slowest.expert});
    return has_output(split_->slowest) ? others : with_output(others);
  }

  // The time that fills and empties the pipeline, with the messages of that phase; those between
  // are in pp_comm. The stages are taken as the mean of the model; where layers are given, as all
  // but the slowest stage, or exactly (pipeline/uneven_stages.h). `slot` is that of the slowest
  // stage.
  Seconds bubble(Seconds slot, Seconds messages) const {
    if (strategy_.pp == 1) return {};
    const Seconds ways = messages * ((strategy_.pp - 1) / parts_met());
    if (split_ != nullptr && split_->makespan)
      return *split_->makespan - slot * micro_batches_ + ways;
    const StageTime stage = split_ != nullptr ? other_stages() : time_of(heaviest_stage());
    const double mean =
        (split_ != nullptr ? 1.0 / (strategy_.pp - 1) : layers() / strategy_.pp / most_blocks()) /
        parts_met();
    const Seconds all = stage.all.total() * mean;
    pipeline::PartTimes part{.forward = stage.forward * mean,
                             .weight_gradient = stage.weight_gradient * mean};
    part.input_gradient = all - part.forward - part.weight_gradient;
    const Seconds step = pipeline::makespan_bound(stages_.shape(), part, Seconds{});
    return step - all * (parts_met() * micro_batches_) + ways;
  }

  // With an even split, stages of pp > 1 hold one table at most, except where zb-v has both ends.
  cost::RankParameters parameters(const StageBlocks& blocks) const {
    const bool has_both = strategy_.pp == 1 || strategy_.schedule == PipelineSchedule::kZbV;
    const int tables = has_both && !input_.model.tied_embeddings ? 2 : 1;
    return stages_.parameters(blocks, tables);
  }
  cost::RankParameters stage_parameters(int stage) const {
    return stages_.parameters(of_stage(stage), tables_of(input_, stage));
  }
  cost::RankParameters heaviest_parameters() const {
    return split_ != nullptr ? stage_parameters(split_->heaviest) : parameters(heaviest_stage());
  }

  void optimizer(StepBreakdown& step, const cost::RankParameters& held) const {
    const double own = cost::updated_parameters(strategy_, held);
    const double kept = cost::shares_gradients(strategy_) ? own : held.total();
    const double sums = traits_.accumulated_bytes * kept * micro_batches_;
    step.optimizer = Seconds{sums / machine_.engines.scores.memory.value};
    if (!offloads_optimizer()) step.optimizer += gpu_optimizer_time(machine_.engines, own);
  }

  bool offloads_optimizer() const {
    return strategy_.offload == Offload::kOptimizer || strategy_.offload == Offload::kBoth;
  }
  bool offloads_activations() const {
    return strategy_.offload == Offload::kActivations || strategy_.offload == Offload::kBoth;
  }

  // Gradients go to the processors, which update, and weights come back; activations go out beside
  // the forward and come back beside the backward.
  void offload(StepBreakdown& step, const cost::RankParameters& held, const StageTime& slot) const {
    const BytesPerSecond link = machine_.engines.host_link;
    if (offloads_optimizer()) {
      // Adam reads and writes 28 bytes a parameter; two sockets of 8 channels sustain some 300
      // GB/s.
      constexpr double kAdamBytes = 28;
      constexpr double kServerMemory = 300e9;
      const double own = cost::updated_parameters(strategy_, held);
      step.offload += Seconds{own * 2 * weight_bytes_ / link.value} +
                      Seconds{own * kAdamBytes * machine_.network.devices / kServerMemory};
    }
    if (offloads_activations()) {
      const StageBlocks& blocks = split_ != nullptr ? of_stage(split_->slowest) : heaviest_stage();
      const Seconds way{stages_.kept(blocks) / link.value};
      const Seconds backward = slot.all.total() - slot.forward;
      // The link is that of the NIC, too, and copies take memory bandwidth from the kernels.
      constexpr double kHidden = 0.8;
      step.offload +=
          (way * 2.0 - (std::min(way, slot.forward) + std::min(way, backward)) * kHidden) *
          micro_batches_;
    }
  }

  const EstimateInput& input_;
  const workload::Strategy& strategy_;
  const cost::StackTraits& traits_;
  const MachineModel& machine_;
  const MicroBatchWork& work_;
  int micro_batches_;
  const StageSplit* split_;  // null: the even split
  double weight_bytes_;
  StageMemory stages_;
};

}  // namespace

MachineModel machine_model(const EstimateInput& input) {
  return {.engines = cost::gpu_engines(input.server.device, input.stack, input.precision),
          .network = cost::server_network(input.server, input.stack)};
}

Estimate assemble_estimate(const EstimateInput& input, const MachineModel& machine,
                           const MicroBatchWork& work, int micro_batches, const StageSplit* split) {
  if (split == nullptr && !input.strategy.stage_layers.empty()) {
    const StageSplit own = stage_split(input, work, micro_batches);
    return Assembly(input, machine, work, micro_batches, &own).run();
  }
  return Assembly(input, machine, work, micro_batches, split).run();
}

StrategyLowerBound strategy_lower_bound(const EstimateInput& input, const MachineModel& machine,
                                        const MicroBatchWork& work, int micro_batches) {
  return Assembly(input, machine, work, micro_batches, nullptr).bound();
}

std::vector<cost::GpuMemory> memory_by_stage(const EstimateInput& input,
                                             const MachineModel& machine, int micro_batches) {
  const MicroBatchWork work = micro_batch_work(input, machine);
  const StageMemory stages(input, work, micro_batches);
  std::vector<cost::GpuMemory> all;
  for (int stage = 0; stage < input.strategy.pp; ++stage)
    all.push_back(stages.of(stage));
  return all;
}

Status check_machine_model(const MachineModel& machine, const topo::DeviceType& device,
                           workload::Precision precision) {
  const cost::MatrixEngine& engine = machine.engines.products;
  if (engine.processors == 0 || engine.peak.value * engine.efficiency <= 0) {
    return Error{Code::kUnsupported,
                 fmt::format("device {}: its processors or its {} peak are not known; add "
                             "processors and {}_peak to its type, or take another precision",
                             device.name, to_string(precision), to_string(precision))};
  }
  if (engine.memory.value <= 0 || machine.network.link.value <= 0) {
    return Error{Code::kUnsupported,
                 fmt::format("device {}: its memory or the links between devices have no "
                             "bandwidth; write what they have",
                             device.name)};
  }
  return {};
}

Seconds step_time_lower_bound(const EstimateInput& input, const MachineModel& machine,
                              const MicroBatchWork& work, int micro_batches,
                              const StageSplit* split) {
  StageTime slot;
  return Assembly(input, machine, work, micro_batches, split).micro_batches(slot).total();
}

Result<Estimate> estimate_step(const EstimateInput& input) {
  REGATTA_TRY(count, workload::micro_batches(input.model, input.strategy, input.global_batch));
  const MachineModel machine = machine_model(input);
  REGATTA_TRY_DO(check_machine_model(machine, input.server.device, input.precision));
  return assemble_estimate(input, machine, micro_batch_work(input, machine), count);
}

}  // namespace regatta::plan
