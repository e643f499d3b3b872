#include "regatta/app/cli/internal/plan_heterogeneous.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/heterogeneous_search.h"

namespace regatta::cli {
bool has_heterogeneous_servers(const topo::Cluster& cluster) {
  return std::any_of(cluster.servers.begin(), cluster.servers.end(), [&](const topo::Server& one) {
    return one.type != cluster.servers.front().type;
  });
}

int show_heterogeneous_plans(const PlanOptions& options, const workload::Job& job,
                             const topo::Cluster& cluster, const cost::SoftwareStack& stack) {
  if (const Status known = check_heterogeneous_options(options, cluster.name); !known)
    return report_error(known.error());
  if (const Status known = plan::check_placement_is_open(job); !known)
    return report_error(known.error());
  const plan::HeterogeneousProblem problem{.model = job.model,
                                           .global_batch = job.global_batch,
                                           .precision = job.precision,
                                           .request = job.strategy,
                                           .cluster = cluster,
                                           .stack = stack};
  const auto result = [&] {
    const SearchProgress progress(stderr, "searching");
    return plan::search_heterogeneous_plans(problem, options.top);
  }();
  if (!result) return report_error(result.error());
  const report::HeterogeneousSearchReport shown{job, problem, *result};
  fmt::print("{}", options.json ? report::heterogeneous_search_json(shown).dump(2) + "\n"
                                : report::heterogeneous_search_text(shown));
  return 0;
}

}  // namespace regatta::cli
