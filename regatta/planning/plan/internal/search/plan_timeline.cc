// The timeline of a plan, whatever predicted it.
#include "regatta/planning/plan/internal/search/heterogeneous_search.h"
#include "regatta/planning/plan/internal/simulate/simulated_timeline.h"
#include "regatta/planning/plan/plan_metrics.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::plan {

Result<StageTimeline> plan_timeline(const PlanningProblem& problem, const Plan& plan) {
  if (plan.simulated)
    return simulated_timeline(*plan.simulated, micro_batches_of(problem, plan.strategy),
                              plan.estimate, stage_memories(problem, plan));
  if (is_heterogeneous(problem)) return heterogeneous_plan_timeline(problem, plan);
  return stage_timeline(input_of(problem, plan.strategy), problem.machine);
}

}  // namespace regatta::plan
