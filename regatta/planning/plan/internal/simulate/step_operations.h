// plan/internal/simulate/step_operations.h: the collectives and transfers of a step, which the
// programs of its lockstep groups start and wait for. A lockstep group is the tensor-parallel group
// of one stage and one replica: its ranks move in lockstep.
#pragma once

#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/planning/plan/internal/simulate/step_program.h"

namespace regatta::plan {

// A collective or transfer that many operations are made of.
struct OperationTemplate {
  int transfer = -1;
  double latency = 0;
};

// The inputs of building a step. The references outlive it.
struct StepShape {
  StepShape(const PlanContext& plan_context, const workload::Strategy& chosen,
            const std::vector<topo::DeviceRef>& devices, int count);

  int group_of(int pp, int dp) const { return pp * strategy.dp + dp; }
  topo::DeviceRef device(int pp, int dp, int tp) const {
    return placement[workload::rank_at(strategy, {.tp = tp, .dp = dp, .pp = pp}).index()];
  }

  const PlanContext& context;
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  const std::vector<topo::DeviceRef>& placement;  // by rank
  int micro_batches = 0;
  double tokens = 0;          // of a micro-batch
  double boundary_bytes = 0;  // what crosses a stage boundary for one micro-batch
  bool is_sliced = false;     // each tensor rank carries its share of a boundary's rows
};

struct StepOperations {
  // By group, empty when tp is 1: the all-reduces of [tokens, hidden] and of the loss's [tokens]
  // and [2, tokens], and the gather that makes a received boundary whole.
  std::vector<OperationTemplate> tensor_sums;
  std::vector<OperationTemplate> tensor_gathers;
  std::vector<OperationTemplate> loss_largest;
  std::vector<OperationTemplate> loss_sums;
  // Operations by boundary, dp, micro-batch.
  std::vector<int> activations;
  std::vector<int> gradients;
  std::vector<std::vector<int>> buckets;  // operations by stage
  std::vector<int> ties;                  // by dp: the tied table's gradient; empty: none
  int norm = -1;                          // the gradient norm over all ranks; -1: one rank
};

// Appends an operation to `program` and returns its index; its latency is that of the pattern
// beside what `like` has.
int add_operation(StepProgram& program, const OperationTemplate& pattern,
                  const CommOperation& like);

// Fills the transfers of `step`, the operations that several lockstep groups share, and the traffic
// of all.
Result<StepOperations> make_operations(const StepShape& shape, BuiltStep& step);

}  // namespace regatta::plan
