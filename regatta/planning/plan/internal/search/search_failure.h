// plan/internal/search/search_failure.h: why a search ends without a plan.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

// "micro_batch 1, pp 8, tp 8": what a request gives; "" where that is nothing.
std::string request_text(const workload::StrategyRequest& request);

// "pp <= 2 and zero in {0, 1}": the conditions of a request.
std::string constraints_text(const workload::StrategyRequest& request);

// No strategy of the request divides the job and the devices: kInvalidInput names the two numbers.
Error no_strategy_divides(const PlanningProblem& problem);

// Strategies divide the job and none fits: the one that needs least, and how much.
std::string no_strategy_fits(const PlanningProblem& problem, const Plan& smallest);

}  // namespace regatta::plan
