// plan/internal/search/equal_server_search.h: every strategy of a job on equal GPU servers in rank
// order: all of them one by one, or with bounds that leave out those that cannot be among the best.
#pragma once

#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

// `ranked` is empty where nothing fits, `smallest` too where no strategy divides the job.
PlanSearchResult search_equal_servers(const PlanningProblem& problem, SearchMode mode, int top,
                                      int threads);

}  // namespace regatta::plan
