// plan/internal/simulate/step_program.h: one training step of every rank as a program for
// plan/internal/simulate/step_simulation.h: the operators, collectives, transfers and their order
// as regatta/runtime/train runs them: 1F1B (Narayanan et al., SOSP'19 and SC'21), tensor
// parallelism inside the block, gradient buckets during the last backward, then clipping and Adam.
#pragma once

#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/internal/simulate/device_network.h"
#include "regatta/planning/plan/internal/simulate/step_simulation.h"

namespace regatta::plan {

// The inputs that are the same for all plans of a job.
struct PlanContext {
  const workload::Job& job;
  const topo::Cluster& cluster;
  const cost::Rates& rates;
  const DeviceNetwork& network;
};

// Bytes that one rank sends to another in a step, for traffic per link.
struct PairBytes {
  DevicePair pair;
  double bytes = 0;
};

struct BuiltStep {
  StepProgram program;  // group = pp * strategy.dp + dp
  std::vector<PairBytes> traffic;
};

// Requires a strategy that micro_batches() accepts and a placement of distinct devices of the
// cluster, one per rank. Fails when ranks that must talk have no path.
Result<BuiltStep> build_step(const PlanContext& context, const workload::Strategy& strategy,
                             const std::vector<topo::DeviceRef>& placement);

}  // namespace regatta::plan
