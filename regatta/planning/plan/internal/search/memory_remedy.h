// plan/internal/search/memory_remedy.h: what would make a job fit that fits nowhere, found by
// trying it.
#pragma once

#include <functional>
#include <string>

#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::plan {

// Whether any strategy of a problem fits.
using FitsPredicate = std::function<bool(const PlanningProblem&)>;

// Of a problem that does not fit: the first of these that does, as an advice like "16 of these
// devices fit it": every form; zero, recompute and offload left free where the request fixes one of
// them; more devices, 2, 3, 4, 6, 8, 12, ... times, up to 262,144 of them. Where none does: a
// smaller model or devices with more memory.
std::string suggest_memory_remedy(const PlanningProblem& problem, const FitsPredicate& fits);

}  // namespace regatta::plan
