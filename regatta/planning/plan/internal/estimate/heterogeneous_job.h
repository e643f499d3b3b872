// plan/internal/estimate/heterogeneous_job.h: a job on mixed servers before it is known how many
// layers each stage holds: what a layer costs in each group of ranks, what lies between the groups.
// For the files of plan/internal/search/heterogeneous_search.h and its searches.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_estimate.h"
#include "regatta/planning/plan/internal/estimate/stage_times.h"

namespace regatta::plan {

// A group of ranks that goes at the pace of its slowest device.
struct HeterogeneousGroup {
  const topo::ServerType* server = nullptr;  // that of its slowest device
  std::string device;
  MachineModel machine;  // its slowest device, the slowest links among all of its devices
  MicroBatchWork work;   // of its slowest device
  Bytes capacity;        // of its smallest device
};

struct HeterogeneousJob {
  const workload::ModelShape& model;
  workload::Strategy strategy;
  int global_batch = 0;
  workload::Precision precision;
  const cost::SoftwareStack& stack;
  bool even_replicas = false;              // each takes as many micro-batches as the others
  int micro_batches = 0;                   // of all replicas together
  int servers = 1;                         // the ranks fill them
  std::vector<HeterogeneousGroup> groups;  // the distinct ones
  std::vector<int> tensor_groups;          // [stage * dp + replica], of `groups`
  std::vector<int> stages;                 // [stage]: all its ranks, of `groups`
  std::vector<Seconds> messages;           // [boundary * dp + replica]: to the next stage, one way
  std::vector<int> like;                   // [replica]: the first with the same groups and messages
  Seconds tied_sum;                        // of the token table's gradients, first and last stage

  const HeterogeneousGroup& tensor_group(int stage, int replica) const {
    return groups[index(tensor_groups, stage * strategy.dp + replica)];
  }
  const HeterogeneousGroup& stage_group(int stage) const { return groups[index(stages, stage)]; }
  // The time of messages that a micro-batch waits for at a stage, forward and backward: half of the
  // messages at either side; at the ends all of the one side. `beside`: the products of the stage
  // for a micro-batch, which hide them.
  Seconds messages_of(int stage, int replica, Seconds beside) const;

 private:
  static std::size_t index(const std::vector<int>& of, int at) {
    return static_cast<std::size_t>(of[as_index(at)]);
  }
};

// Fails as estimate_heterogeneous() does, but for the split. The cluster of `input` outlives it.
Result<HeterogeneousJob> heterogeneous_job(const HeterogeneousInput& input);

HeterogeneousSplit even_split(const HeterogeneousJob& job);
// kInvalidInput where the split is not one of the job's layers and micro-batches.
Status check_split(const HeterogeneousJob& job, const HeterogeneousSplit& split);

// `split` as estimate_heterogeneous() requires it.
HeterogeneousEstimate estimate_heterogeneous(const HeterogeneousJob& job,
                                             const HeterogeneousSplit& split);

// The timeline of the slowest replica (plan/stage_timeline.h).
struct StageTimeline;
Result<StageTimeline> heterogeneous_timeline(const HeterogeneousJob& job,
                                             const HeterogeneousSplit& split);

// The time of a micro-batch in a stage of these blocks, without messages.
StageTime micro_batch_breakdown(const HeterogeneousJob& job, const MicroBatchWork& work, int stage,
                                const workload::BlockCounts& blocks);

// A group's devices as equal ones, for the parts of the estimate that look at one stage alone.
EstimateInput estimate_input(const HeterogeneousJob& job, const HeterogeneousGroup& group);

// With up to `micro_batches` in flight.
cost::GpuMemory stage_memory(const HeterogeneousJob& job, int stage,
                             const workload::BlockCounts& blocks, int micro_batches);

// Gradients of a stage summed over its replicas, weights gathered where they share them or the
// optimizer, the update, and transfers to the server's memory, for all of `micro_batches`.
struct StageUpdate {
  Seconds sums;
  Seconds optimizer;
  Seconds offload;

  Seconds total() const { return sums + optimizer + offload; }
};
StageUpdate stage_update(const HeterogeneousJob& job, int stage,
                         const workload::BlockCounts& blocks, int micro_batches);

}  // namespace regatta::plan
