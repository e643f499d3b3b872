// plan/internal/search/strategy_space.h: the space of strategies of a job on so many devices, in
// two levels: what decides a micro-batch on one rank, and the rest.
#pragma once

#include <functional>
#include <vector>

#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::plan {

// From 1, ascending. Requires a number of at least 1.
std::vector<int> divisors(int number);

struct StrategySpaceInput {
  const workload::ModelShape& model;
  int global_batch = 0;
  const workload::StrategyRequest& request;
  int devices = 0;
  int server_devices = 8;
  // Also forms that few stacks execute, unless the request names them: schedules that split the
  // backward, offload, sharing among fewer than all replicas.
  bool every_form = false;
  std::function<bool(const workload::Strategy&)> accepts = {};  // of completions; empty: all
};

// tp, cp, context, ep, etp, sequence_parallel, micro_batch and recompute of all strategies, each
// once; the other fields are those of a Strategy of the defaults.
std::vector<workload::Strategy> work_strategies(const StrategySpaceInput& input);

// `work` with every number of stages and replicas that uses all devices and divides the job, and
// the layers of stages that the request gives.
std::vector<workload::Strategy> stage_counts(const StrategySpaceInput& input,
                                             const workload::Strategy& work);

// Adds the strategies that have these fields of `staged` (of stage_counts()), for which
// micro_batches() does not fail and which `accepts` accepts.
void add_completions(const StrategySpaceInput& input, const workload::Strategy& staged,
                     std::vector<workload::Strategy>& completions);

}  // namespace regatta::plan
