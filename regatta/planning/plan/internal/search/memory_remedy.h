// plan/internal/search/memory_remedy.h: what would make a job fit that fits nowhere, found by
// trying it.
#pragma once

#include <functional>
#include <string>

#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::plan {

// Whether any strategy of a problem fits.
using FitsPredicate = std::function<bool(const PlanningProblem&)>;

// The first change that makes a problem fit which does not fit, as an advice like "16 of these
// devices fit it": any strategy; free zero, recompute and offload where the request fixes one of
// them; 2, 3, 4, 6, 8, 12, ... times as many devices, up to 262,144. Where none helps: a smaller
// model or devices with more memory.
std::string suggest_memory_remedy(const PlanningProblem& problem, const FitsPredicate& fits);

}  // namespace regatta::plan
