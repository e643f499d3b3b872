#include "regatta/app/cli/internal/plan_sizes.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/plan_outputs.h"
#include "regatta/app/cli/internal/plan_show.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::cli {
namespace {

// Which size is selected.
struct SizeRequest {
  plan::Objective objective = plan::Objective::kTime;
  std::optional<Seconds> within;
};

Result<SizeRequest> size_request(const PlanOptions& options, int steps) {
  SizeRequest request;
  if (!options.within.empty()) {
    const auto within = parse_seconds(options.within);
    if (!within || within->value <= 0)
      return Error{Code::kInvalidInput,
                   fmt::format("--within: '{}' is not a time; write it like 30d or 12h",
                               printable(options.within, 60))};
    if (steps == 0)
      return Error{Code::kInvalidInput,
                   "--within: the job does not say how long it is; add steps to it, or --steps"};
    request = {.objective = plan::Objective::kCost, .within = *within};
  }
  if (const auto objective = plan::objective_named(options.objective))
    request.objective = *objective;
  return request;
}

}  // namespace

int show_sizes(const PlanOptions& options, const workload::Job& job, const topo::Cluster& cluster,
               const plan::PlanningProblem& problem) {
  const int steps = options.steps > 0 ? options.steps : job.steps;
  const auto request = size_request(options, steps);
  if (!request) return report_error(request.error());
  const int threads = search_threads();
  const auto sizes = [&] {
    const SearchProgress progress(stderr, "searching on several numbers of servers");
    return plan::plan_cluster_sizes(problem,
                                    {.steps = steps, .price = options.price, .threads = threads});
  }();
  if (!sizes) return report_error(sizes.error());
  const auto index = plan::select_size(*sizes, request->objective, request->within);
  if (!index) return report_error(index.error());
  const plan::ClusterSize& picked = sizes->sizes[*index];
  plan::PlanningProblem sized = problem;
  sized.devices = picked.devices;
  const auto is_printed =
      write_outputs(options, {job, cluster, sized, picked.plan, &*sizes, *index});
  if (!is_printed) return report_error(is_printed.error());
  if (*is_printed) return 0;
  const report::ClusterSizesReport shown{.job = job,
                                         .cluster = cluster,
                                         .problem = problem,
                                         .sizes = *sizes,
                                         .picked = *index,
                                         .objective = request->objective,
                                         .within = request->within,
                                         .price = options.price};
  fmt::print("{}", options.json ? report::cluster_sizes_json(shown).dump(2) + "\n"
                                : report::cluster_sizes_text(shown));
  return 0;
}

}  // namespace regatta::cli
