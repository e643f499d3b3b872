#include "regatta/app/cli/internal/plan_show.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/plan_outputs.h"
#include "regatta/app/cli/internal/plan_servers.h"
#include "regatta/app/cli/internal/plan_sizes.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::cli {
namespace {

using plan::Plan;
using plan::PlanningProblem;

// A strategy as it stands must meet the constraints, too.
Status check_admitted(const workload::StrategyRequest& request,
                      const workload::Strategy& strategy) {
  for (const workload::StrategyConstraint& one : request.constraints) {
    if (workload::admits(one, strategy)) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("--exact: {} does not meet {}; change the strategy or leave the "
                             "constraint out",
                             to_string(strategy), to_string(one))};
  }
  return {};
}

// Prices what the job gives as it stands, whether it fits or not.
int show_exact(const PlanOptions& options, const workload::Job& job, const topo::Cluster& cluster,
               const PlanningProblem& problem, const std::vector<std::string>& warnings) {
  const workload::Strategy strategy = plan::exact_strategy(job.strategy, problem.devices);
  if (const Status admitted = check_admitted(job.strategy, strategy); !admitted)
    return report_error(admitted.error());
  const auto priced = plan::exact_plan(problem, strategy);
  if (!priced) return report_error(priced.error());
  const Plan& plan = *priced;
  if (const std::string shortfall = plan::memory_shortfall(problem, plan); !shortfall.empty())
    print_warnings({"the strategy " + shortfall});
  if (!options.json) print_warnings(warnings);
  const auto is_printed = write_outputs(options, {job, cluster, problem, plan});
  if (!is_printed) return report_error(is_printed.error());
  if (*is_printed) return 0;
  const report::PlanReport shown{job,
                                 cluster,
                                 problem,
                                 plan,
                                 plan::place_plan(cluster, problem, plan.strategy, options.without),
                                 warnings};
  fmt::print("{}", options.json ? report::exact_plan_json(shown).dump(2) + "\n"
                                : report::exact_plan_text(shown));
  return 0;
}

// The user's strategies of --compare; what they leave open is as the job gives it, else searched.
Result<std::vector<Plan>> compared_plans(const PlanOptions& options, const workload::Job& job,
                                         const PlanningProblem& problem) {
  std::vector<Plan> plans;
  for (const std::string& text : options.compared) {
    REGATTA_TRY(given, workload::parse_strategy(text, "--compare"));
    workload::StrategyRequest request = workload::merged(given, job.strategy);
    request.constraints = given.constraints;  // those of the search are not for it
    REGATTA_TRY_DO(workload::check_request(request));
    auto plan = plan::nearest_plan(plan::with_request(problem, request), search_threads());
    if (!plan) return Error{plan.error().code, "--compare: " + plan.error().message};
    plans.push_back(*std::move(plan));
  }
  return plans;
}

int show_search(const PlanOptions& options, const workload::Job& job, const topo::Cluster& cluster,
                const PlanningProblem& problem, const std::vector<std::string>& warnings) {
  const auto start = std::chrono::steady_clock::now();
  const auto mode = options.exhaustive || options.frontier ? plan::SearchMode::kExhaustive
                                                           : plan::SearchMode::kPruned;
  const int threads = search_threads();
  const auto result = [&] {
    const SearchProgress progress(stderr, "searching");
    return plan::search_plans(problem, mode, options.top, threads);
  }();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!result)
    return report_error(
        with_fewer_servers(options, problem, with_launch_bounds(options, problem, result.error())));
  const auto compared = compared_plans(options, job, problem);
  if (!compared) return report_error(compared.error());
  if (!options.json) print_warnings(warnings);
  const Plan& best = result->ranked.front();
  const auto is_printed = write_outputs(options, {job, cluster, problem, best});
  if (!is_printed) return report_error(is_printed.error());
  if (*is_printed) return 0;
  const report::PlanSearchReport shown{
      .best = {job, cluster, problem, best,
               plan::place_plan(cluster, problem, best.strategy, options.without), warnings},
      .result = *result,
      .compared = *compared,
      .search_time = {took.count()},
      .has_frontier = options.frontier,
      .top = options.top};
  fmt::print("{}", options.json ? report::plan_search_json(shown).dump(2) + "\n"
                                : report::plan_search_text(shown));
  return 0;
}

}  // namespace

int search_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int show_plans(const PlanOptions& options, const workload::Job& job, const topo::Cluster& cluster) {
  if (const Status outputs = check_plan_outputs(options); !outputs)
    return report_error(outputs.error());
  if (!plan::is_gpu_cluster(cluster)) {
    if (const Status known = check_cpu_options(options, job); !known)
      return report_error(known.error());
  }
  const auto predictor = step_predictor(options.stack, job, cluster, options.cluster);
  if (!predictor) return report_error(predictor.error());
  const std::vector<std::string>& warnings = predictor->warnings;
  auto whole = problem_of(job, cluster, *predictor);
  if (!whole) return report_error(whole.error());
  whole->every_form = options.every_form;
  if (const Status bound = bind_to_launcher(options, *whole); !bound)
    return report_error(bound.error());
  const auto left = plan::servers_without(cluster, options.without);
  if (!left) return report_error(left.error());
  if (left->empty()) {
    return report_error({Code::kInvalidInput,
                         fmt::format("--without: it names all servers of cluster {}; leave some in",
                                     cluster.name)});
  }
  const PlanningProblem available =
      options.without.empty() ? *whole : plan::on_servers(*whole, *left);
  const auto used = used_servers(options, available, cluster.name, static_cast<int>(left->size()));
  if (!used) return report_error(used.error());
  if (!used->note.empty()) print_warnings({used->note});
  const PlanningProblem problem = used->count == plan::server_count(available)
                                      ? available
                                      : plan::on_servers(available, used->count);
  if (problem.machine.network.more_devices > 0)
    print_warnings({topo::unequal_parts_note(problem.server.scale_up, used->count)});
  if (options.sizes) return show_sizes(options, job, cluster, problem);
  if (options.exact) return show_exact(options, job, cluster, problem, warnings);
  return show_search(options, job, cluster, problem, warnings);
}

}  // namespace regatta::cli
