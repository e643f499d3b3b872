// cli/internal/plan_servers.h: how many servers of a cluster a plan uses.
#pragma once

#include <string>

#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/base/core/result.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::cli {

// The servers that a job uses, and why they are not all of those that are left.
struct UsedServers {
  int count = 0;
  std::string note;
};

// `left`: those of the cluster that --without does not name. Where servers are lost, a job need not
// use all others: some numbers divide no job, and a smaller one may be faster. kInvalidInput where
// more are asked for.
Result<UsedServers> used_servers(const PlanOptions& options, const plan::PlanningProblem& problem,
                                 const std::string& cluster, int left);

// `error`, with a smaller number of servers that has a plan, where there is one.
Error with_fewer_servers(const PlanOptions& options, const plan::PlanningProblem& problem,
                         const Error& error);

}  // namespace regatta::cli
