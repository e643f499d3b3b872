// plan/internal/search/simulated_search.h: the plans of a job on CPUs, whose steps are simulated,
// as plans of a search (plan/plan_search.h).
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

// The `top` fastest of those that fit, all placements among them. Fails as
// search_simulated_plans().
Result<PlanSearchResult> search_simulated(const PlanningProblem& problem, int top);

// A strategy where the job places its ranks, else in rank order on the problem's servers. Fails as
// predict(), and for what the runtime does not execute.
Result<Plan> exact_simulated_plan(const PlanningProblem& problem,
                                  const workload::Strategy& strategy);

// The step of a plan anew with other rates. Requires a plan of the problem.
Seconds simulate_again(const PlanningProblem& problem, const Plan& plan, const cost::Rates& rates);

// The memory of a device of each stage at its worst moment.
std::vector<cost::GpuMemory> simulated_memory_by_stage(const PlanningProblem& problem,
                                                       const workload::Strategy& strategy);

}  // namespace regatta::plan
