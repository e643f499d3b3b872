#include "regatta/planning/plan/estimate.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "regatta/model/pipeline/closed_form.h"
#include "regatta/planning/plan/internal/estimate/optimizer_time.h"
#include "regatta/planning/plan/internal/estimate/replica_communication.h"
#include "regatta/planning/plan/internal/estimate/stage_memory.h"
#include "regatta/planning/plan/internal/estimate/stage_times.h"
#include "regatta/planning/plan/internal/search/stage_split.h"

namespace regatta::plan {
namespace {

using workload::PipelineSchedule;

class Assembly {
 public:
  Assembly(const EstimateInput& input, const MachineModel& machine, const MicroBatchWork& work,
           int micro_batches, const StageSplit* split)
      : input_(input),
        strategy_(input.strategy),
        machine_(machine),
        work_(work),
        micro_batches_(micro_batches),
        own_split_(split == nullptr && needs_split(input)
                       ? std::optional(stage_split(input, work, micro_batches))
                       : std::nullopt),
        split_(own_split_ ? &*own_split_ : split),
        times_(input, work, split_),
        stages_(input, work, micro_batches) {}

  Estimate run() {
    Estimate estimate;
    StageTime slot;
    estimate.step = micro_batches(slot);
    const cost::RankParameters held = heaviest_parameters();
    const ReplicaCommunication replicas(input_, machine_, held, micro_batches_);
    estimate.step.dp_comm = replicas.exposed_beside(slot.all.total(), slot.forward);
    estimate.step.optimizer = optimizer_time(input_, machine_, held, micro_batches_);
    const OffloadedActivations activations{.bytes = stages_.kept(times_.slowest_blocks()),
                                           .forward = slot.forward,
                                           .backward = slot.all.total() - slot.forward};
    estimate.step.offload = optimizer_offload_time(input_, machine_, held) +
                            activation_offload_time(input_, machine_, activations) * micro_batches_;
    const StageMemory::Worst worst =
        split_ != nullptr ? stages_.worst_of(split_->fullest) : stages_.worst();
    estimate.memory = worst.memory;
    estimate.worst_stage = worst.stage;
    return estimate;
  }

  // All micro-batches through the pipeline, without what a step does once; `slot` is set to what
  // the slowest stage does for one.
  StepBreakdown micro_batches(StageTime& slot) const {
    slot = slowest_slot(input_, times_);
    StepBreakdown step = slot.all;
    step.pp_comm = boundary(slot.all.matmul);
    const Seconds fill = bubble(slot.all.total(), step.pp_comm);
    step *= micro_batches_;
    step.bubble = fill;
    const double servers = static_cast<double>(strategy_.world_size()) * machine_.network.servers /
                           machine_.network.devices;
    step.stragglers = straggler_time(step, servers);
    return step;
  }

  StrategyLowerBound bound() const {
    // DualPipe hides the exchange of experts' tokens.
    const StageTime slot = times_.slowest();
    const Seconds even = slot.all.total() - slot.all.ep_comm;
    const Seconds balanced = balanced_slot(input_, work_).value_or(even);
    return {.time = std::min(even, balanced) * micro_batches_, .memory = stages_.least()};
  }

 private:
  // The activations of a micro-batch to the next stage and their gradient back, of every part of
  // the model that the stage holds.
  // `beside` is the products of the stage, which hide it.
  Seconds boundary(Seconds beside) const {
    if (strategy_.pp == 1) return {};
    const int stride = strategy_.world_size() / strategy_.pp;
    const Seconds message =
        cost::message_time(machine_.network, stride, strategy_.pp, work_.boundary);
    return exposed(message * (2.0 * parts_met()), beside, input_.stack.traits.pp_overlap);
  }

  // Parts of the model that a micro-batch meets on one stage.
  double parts_met() const { return workload::parts_per_stage(strategy_); }

  // The time that fills and empties the pipeline, with the messages of that phase; those between
  // are in pp_comm. The stages are taken as equal, or exactly (pipeline/uneven_stages.h). `slot` is
  // that of the slowest stage.
  Seconds bubble(Seconds slot, Seconds messages) const {
    if (strategy_.pp == 1) return {};
    const Seconds transfers = messages * ((strategy_.pp - 1) / parts_met());
    if (split_ != nullptr && split_->makespan)
      return *split_->makespan - slot * micro_batches_ + transfers;
    const StagePartTime mean = times_.mean_part(parts_met());
    pipeline::PartTimes part{.forward = mean.forward, .weight_gradient = mean.weight_gradient};
    part.input_gradient = mean.all - part.forward - part.weight_gradient;
    const Seconds step = pipeline::makespan_bound(stages_.shape(), part, Seconds{});
    return step - mean.all * (parts_met() * micro_batches_) + transfers;
  }

  // With an even split, stages of pp > 1 hold one table at most, except where zb-v has both ends.
  cost::RankParameters heaviest_parameters() const {
    const bool has_both = strategy_.pp == 1 || strategy_.schedule == PipelineSchedule::kZbV;
    const int tables = split_ != nullptr ? tables_of(input_, split_->heaviest)
                       : has_both && !input_.model.tied_embeddings ? 2
                                                                   : 1;
    return stages_.parameters(times_.heaviest_blocks(), tables);
  }

  const EstimateInput& input_;
  const workload::Strategy& strategy_;
  const MachineModel& machine_;
  const MicroBatchWork& work_;
  int micro_batches_;
  std::optional<StageSplit> own_split_;
  const StageSplit* split_;  // null: the even split of stages that are alike
  StageTimes times_;
  StageMemory stages_;
};

int servers_filled_by(const EstimateInput& input) {
  const int devices = input.server.device_count;
  return (input.strategy.world_size() + devices - 1) / devices;
}

}  // namespace

int joined_devices(const EstimateInput& input) {
  return input.server.device_count * cost::job_parts(input.server.scale_up,
                                                     servers_filled_by(input),
                                                     std::numeric_limits<int>::max())
                                         .last;
}

MachineModel machine_model(const EstimateInput& input) {
  return {.engines = cost::gpu_engines(input.server.device, input.stack, input.precision),
          .network = cost::network_of_job(cost::server_network(input.server, input.stack),
                                          servers_filled_by(input))};
}

Estimate assemble_estimate(const EstimateInput& input, const MachineModel& machine,
                           const MicroBatchWork& work, int micro_batches, const StageSplit* split) {
  return Assembly(input, machine, work, micro_batches, split).run();
}

StrategyLowerBound strategy_lower_bound(const EstimateInput& input, const MachineModel& machine,
                                        const MicroBatchWork& work, int micro_batches) {
  // Which stage decides depends on the schedule, too.
  if (needs_split(input)) return {.time = mean_slot(input, work) * micro_batches};
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
  REGATTA_TRY_DO(cost::check_precision(device, precision));
  if (machine.engines.products.memory.value <= 0 || machine.network.link.value <= 0) {
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
