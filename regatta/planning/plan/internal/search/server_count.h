// plan/internal/search/server_count.h: the numbers of servers among which a job looks for the
// fastest.
#pragma once

#include <vector>

#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

// Whether a strategy of the request divides the job and the devices, whether it fits or not.
bool has_strategy(const PlanningProblem& problem);

// The numbers from `least` to `most` that fastest_server_count() looks at, descending: all where
// they are few, else the largest and those whose `devices` each divide a batch best: the odd
// factors that no number of replicas takes up, and stages must, are small.
std::vector<int> counts_to_try(int least, int most, int devices, int global_batch);

}  // namespace regatta::plan
