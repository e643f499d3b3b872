#include "regatta/app/cli/internal/plan_outputs.h"

#include <utility>

#include <fmt/format.h>

#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/report/pages.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/planning/plan/launch.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::cli {
namespace {

// A script starts as many ranks on every server.
Status check_same_devices(const plan::PlanningProblem& problem) {
  for (const ServerId server : problem.servers) {
    const topo::ServerType& type = problem.cluster->type_of(server);
    if (type.device_count == problem.server.device_count) continue;
    return Error{
        Code::kUnsupported,
        fmt::format("--launch: servers of cluster {} have {} and {} devices, and a script "
                    "starts as many ranks on each; leave one type out with --without",
                    problem.cluster->name, problem.server.device_count, type.device_count)};
  }
  return {};
}

}  // namespace

Status check_plan_outputs(const PlanOptions& options) {
  return check_outputs({{"--html", options.html}, {"--trace", options.trace}},
                       {options.job, options.cluster});
}

Status bind_to_launcher(const PlanOptions& options, plan::PlanningProblem& problem) {
  if (options.launcher.empty()) return {};
  const auto launcher = plan::launcher_named(options.launcher);
  REGATTA_CHECK(launcher.has_value());
  REGATTA_TRY_DO(plan::check_launch_request(*launcher, problem));
  REGATTA_TRY_DO(check_same_devices(problem));
  problem.even_replicas = true;  // frameworks give every replica as many samples
  problem.accepts = plan::runnable_by(*launcher, problem);
  return {};
}

Error with_launch_bounds(const PlanOptions& options, const plan::PlanningProblem& problem,
                         Error error) {
  const auto launcher = plan::launcher_named(options.launcher);
  if (!launcher) return error;
  error.message += fmt::format("; --launch {} bound the search: {}", options.launcher,
                               join(plan::launch_bounds(*launcher, problem.request), ", "));
  return error;
}

Result<bool> write_outputs(const PlanOptions& options, const PlanToWrite& one) {
  const auto& [job, cluster, problem, plan, sizes, picked] = one;
  if (!options.html.empty() || !options.trace.empty()) {
    REGATTA_TRY(timeline, plan::plan_timeline(problem, plan));
    const report::PlanPage page{
        .job_name = job.name,
        .cluster_name = cluster.name,
        .stack_name = problem.stack.name,
        .stack_assumes = problem.stack.assumes,
        .interval = plan::prediction_interval(problem, plan),
        .model = problem.model,
        .strategy = plan.strategy,
        .precision = problem.precision,
        .global_batch = problem.global_batch,
        .device = plan::device_names(problem),
        .capacity = plan::capacity_of(problem, plan),
        .timeline = timeline,
        .phases = plan.simulated ? &plan.simulated->prediction.phases : nullptr,
        .sizes = sizes,
        .picked = picked};
    OutputFiles outputs;
    outputs.add({"--html", options.html}, [&] { return report::plan_html(page); });
    outputs.add({"--trace", options.trace}, [&] { return report::plan_trace(timeline); });
    REGATTA_TRY_DO(outputs.write());
  }
  if (options.launcher.empty()) return false;
  const auto launcher = plan::launcher_named(options.launcher);
  REGATTA_CHECK(launcher.has_value());
  const int servers = plan::server_count(problem);
  const auto placed = plan::place_plan(cluster, problem, plan.strategy, options.without);
  plan::Placement ranks;  // on servers of several types
  for (const ServerId server : plan.servers)
    for (int device = 0; device < cluster.type_of(server).device_count; ++device)
      ranks.push_back({server, device});
  if (placed) ranks = placed->placement.device_of_rank;
  REGATTA_TRY(script,
              plan::launch_arguments(
                  *launcher, {.model = problem.model,
                              .strategy = plan.strategy,
                              .precision = problem.precision,
                              .global_batch = problem.global_batch,
                              .servers = servers,
                              .devices_per_server = problem.server.device_count,
                              .job_name = job.name,
                              .optimizer = job.optimizer,
                              .steps = job.steps > 0 ? job.steps : plan::kDefaultSteps,
                              .checkpoint = job.checkpoint,
                              .placed = plan::launch_servers(cluster, servers, options.without,
                                                             ranks.empty() ? nullptr : &ranks),
                              .bounds = plan::launch_bounds(*launcher, problem.request),
                              .step = plan.estimate.step.total()}));
  fmt::print("{}", script);
  return true;
}

}  // namespace regatta::cli
