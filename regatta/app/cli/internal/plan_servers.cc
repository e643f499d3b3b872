#include "regatta/app/cli/internal/plan_servers.h"

#include <cstdio>

#include <fmt/format.h>

#include "regatta/app/cli/internal/plan_show.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::cli {

Result<UsedServers> used_servers(const PlanOptions& options, const plan::PlanningProblem& problem,
                                 const std::string& cluster, int left) {
  if (options.servers > left) {
    return Error{Code::kInvalidInput,
                 fmt::format("cluster {}: {} servers are left, {} are asked for; take fewer",
                             cluster, left, options.servers)};
  }
  if (options.servers > 0) return UsedServers{options.servers, ""};
  if (options.without.empty() || options.sizes || options.exact) return UsedServers{left, ""};
  const SearchProgress progress(stderr, "searching the best number of servers");
  const auto best = plan::fastest_server_count(problem, 1, left, search_threads());
  if (!best || best->servers == left) return UsedServers{left, ""};
  return UsedServers{best->servers,
                     fmt::format("{} of the {} servers that are left are used: no larger number of "
                                 "them is faster; --servers {} takes all",
                                 best->servers, left, left)};
}

Error with_fewer_servers(const PlanOptions& options, const plan::PlanningProblem& problem,
                         const Error& error) {
  const int servers = plan::server_count(problem);
  if (options.servers > 0 || servers == 1) return error;
  const auto fewer = plan::fastest_server_count(problem, 1, servers - 1, search_threads());
  if (!fewer) return error;
  return {error.code, fmt::format("{}; --servers {} has a plan: {}, {} a step", error.message,
                                  fewer->servers, to_string(fewer->plan.strategy),
                                  format_seconds(fewer->plan.estimate.step.total()))};
}

}  // namespace regatta::cli
