// plan/internal/simulate/evaluate_plan.h: predicts one plan when the network is built already: the
// inner loop of search.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/planning/plan/internal/simulate/step_program.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::plan {

// Fails with kInvalidInput when the rates lack a device type of the cluster or the precision.
Status check_rates(const workload::Job& job, const topo::Cluster& cluster,
                   const cost::Rates& rates);

// The rank that comes nearest to its device's memory, or exceeds it most.
struct MemoryCheck {
  MemoryUse use;
  Rank rank{0};
  Bytes device;  // memory of that device
  bool fits() const { return use.total() <= device; }
};
MemoryCheck check_memory(const PlanContext& context, const workload::Strategy& strategy,
                         const Placement& placement);

// Requires what build_step() requires and that check_rates() passed.
Result<Prediction> evaluate_plan(const PlanContext& context, const workload::Strategy& strategy,
                                 const Placement& placement);

}  // namespace regatta::plan
