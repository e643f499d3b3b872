// plan/estimate.h: a training step on a GPU cluster in closed form: the time of each part and the
// memory of a device, for a complete strategy on equal servers in rank order, under a software
// stack (cost/software_stack.h). Pipeline: Narayanan et al., SC'21, section 2.2.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/cost/gpu_block.h"
#include "regatta/model/cost/gpu_network.h"
#include "regatta/model/cost/memory.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/blocks.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::plan {

// The references outlive the call.
struct EstimateInput {
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  int global_batch = 0;
  workload::Precision precision = workload::Precision::kBf16;
  const topo::ServerType& server;
  const cost::SoftwareStack& stack;
};

// The parts of a step on its critical path: one after the other, their sum is the step.
// Communication counts as far as computation does not hide it.
struct StepBreakdown {
  Seconds matmul;
  Seconds attention;
  Seconds passes;     // memory-bound operators
  Seconds recompute;  // of activations
  Seconds host;       // the device waits for the host to launch kernels
  Seconds tp_comm;
  Seconds cp_comm;
  Seconds ep_comm;
  Seconds pp_comm;
  Seconds dp_comm;
  Seconds bubble;
  Seconds optimizer;   // with the sums of gradients of micro-batches
  Seconds offload;     // transfers to the server's memory and back
  Seconds stragglers;  // all wait for the slowest server

  StepBreakdown& operator+=(const StepBreakdown& other);
  StepBreakdown& operator*=(double factor);
  Seconds total() const;
};

// The part of an exchange that computation beside it does not hide: the share `overlap` of `beside`
// hides as much.
inline Seconds exposed(Seconds exchange, Seconds beside, double overlap) {
  return exchange - std::min(exchange, beside) * overlap;
}

// Every part of a step by its name in files and messages.
struct NamedStepPart {
  std::string name;  // "tp_comm"
  Seconds time;
};
std::vector<NamedStepPart> named_step_parts(const StepBreakdown& step);

// The time that the slowest of `servers` adds to the computation of `step`:
// cost::straggler_factor().
Seconds straggler_time(const StepBreakdown& step, double servers);

struct Estimate {
  StepBreakdown step;
  cost::GpuMemory memory;  // of the worst stage
  int worst_stage = 0;
};

// The cost of a micro-batch for one rank; it depends on the model, the device, and the strategy's
// tp, cp, ep, etp, micro_batch, recompute and sequence_parallel alone.
struct BlockWork {
  StepBreakdown time;  // forward and backward
  Seconds forward;     // of time, with its communication
  Seconds weight_gradient;
  cost::BlockMemory memory;
  cost::RankParameters parameters;
};
struct MicroBatchWork {
  // By the kinds of workload/blocks.h; nothing for those that the model does not have.
  std::array<BlockWork, workload::kBlockKinds> blocks;
  StepBreakdown embedding_and_head;  // embedding, output layer and loss
  double logits = 0;                 // bytes
  double boundary = 0;               // bytes that a rank sends to the next stage,
  double output = 0;                 // and that it keeps of them for its backward
  double table = 0;                  // parameters of a rank's part of the token table
  bool is_frozen = false;            // so that this table is not trained
};

// The consequences of an EstimateInput that are the same for every strategy.
struct MachineModel {
  cost::GpuEngines engines;
  cost::ServerNetwork network;
};
MachineModel machine_model(const EstimateInput& input);

// Devices whose links join them, of the ranks of the strategy: those of a server, or of the part of
// a scale-up domain that the job uses.
int joined_devices(const EstimateInput& input);

MicroBatchWork micro_batch_work(const EstimateInput& input, const MachineModel& machine);

struct StageSplit;  // plan/internal/search/stage_split.h

// The rest of the strategy on top of it: pipeline, replicas, optimizer. `micro_batches` as
// workload::micro_batches() counts them; `split` is that of strategy.stage_layers, where they are
// given: when it is given, it is not computed again.
Estimate assemble_estimate(const EstimateInput& input, const MachineModel& machine,
                           const MicroBatchWork& work, int micro_batches,
                           const StageSplit* split = nullptr);

// The memory of each stage, first to last; the largest is Estimate::memory
// (plan/internal/estimate/stage_memory.h).
std::vector<cost::GpuMemory> memory_by_stage(const EstimateInput& input,
                                             const MachineModel& machine, int micro_batches);

// Lower bounds for all strategies with the same degrees and micro-batch, for every schedule,
// sharding and offload, with its stage_layers or, where it has none, the even or the balanced
// split.
struct StrategyLowerBound {
  Seconds time;
  double memory = 0;  // bytes
};
StrategyLowerBound strategy_lower_bound(const EstimateInput& input, const MachineModel& machine,
                                        const MicroBatchWork& work, int micro_batches);

// A further lower bound for all strategies with the same schedule and stages, for every sharding
// and offload.
Seconds step_time_lower_bound(const EstimateInput& input, const MachineModel& machine,
                              const MicroBatchWork& work, int micro_batches,
                              const StageSplit* split = nullptr);

// Fails with kUnsupported for a device whose processors or whose rate in that precision are not
// known, or whose memory or links have none.
Status check_machine_model(const MachineModel& machine, const topo::DeviceType& device,
                           workload::Precision precision);

// Computes both. Fails with kInvalidInput where the strategy does not divide the job
// (workload::micro_batches), and as check_machine_model().
Result<Estimate> estimate_step(const EstimateInput& input);

// The traffic between the ranks of a strategy in a step, axis by axis, in rank order (tensor ranks
// adjacent, then context, data, pipeline). Volumes are those of plan/estimate.h and of
// cost/gpu_network.h, which name their sources.

enum class ParallelAxis { kTp, kCp, kEp, kPp, kDp };
inline constexpr std::size_t kAxisCount = 5;
inline constexpr std::array<std::string_view, kAxisCount> kAxisNames = {"tp", "cp", "ep", "pp",
                                                                        "dp"};

enum class GroupPattern {
  kRing,      // every rank to the next one, the last to the first
  kChain,     // neighbours to each other, as much in both directions
  kEnds,      // the first and the last to each other: a stage holds several parts of the model
  kExchange,  // every rank to all others alike
};

// Groups of `ranks` ranks that are `stride` apart and communicate in one pattern; the groups
// together are all ranks. `bytes` of a step: of a ring and a chain over each connection, one way;
// of an exchange from each rank to the others together.
struct GroupTraffic {
  GroupPattern pattern = GroupPattern::kRing;
  int ranks = 1;
  int stride = 1;
  double bytes = 0;
};

// `overlap` is the share that computation hides, of no more than `beside` lasts.
struct AxisTraffic {
  std::vector<GroupTraffic> lines;
  double overlap = 0;
  Seconds beside;
};
using StrategyTraffic = std::array<AxisTraffic, kAxisCount>;  // by Axis

// The part of `exchange` of an axis that its computation does not hide.
Seconds exposed_time(const AxisTraffic& axis, Seconds exchange);

// The traffic of the stage that holds most; all stages are taken to be equal to it.
StrategyTraffic strategy_traffic(const EstimateInput& input, const MicroBatchWork& work,
                                 int micro_batches);

}  // namespace regatta::plan
