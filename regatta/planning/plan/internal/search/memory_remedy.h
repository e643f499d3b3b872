// plan/internal/search/memory_remedy.h: what would make a job fit that fits nowhere, found by
// trying it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

// The fastest plan of a problem that fits, where one does.
using FindPlan = std::function<std::optional<Plan>(const PlanningProblem&)>;

// The first change that makes a problem fit which does not fit, as an advice like "leave recompute
// open: tp8 pp4 dp2 ... fits" or "16 of these devices fit it": one key of the request left open,
// the least restrictive first; two or three degrees that depend on each other; every form of
// strategy; all that decides memory, then all keys with every form; 2, 3, 4, 6, 8, 12, ... times as
// many devices, up to 262,144. Where none helps: a smaller model or devices with more memory.
std::string suggest_memory_remedy(const PlanningProblem& problem, const FindPlan& find);

}  // namespace regatta::plan
