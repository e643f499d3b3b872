#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/sched_command.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/planning/plan/plan_metrics.h"
#include "regatta/platform/job_plan/planned_job.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::cli {
namespace {

struct SchedRequestOptions {
  std::string job;
  std::string cluster;
  std::string queue;
  std::string stack;
  int priority = 0;
};

Status run_sched_request(const SchedRequestOptions& options) {
  REGATTA_TRY(job, load_job(options.job));
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  REGATTA_TRY(predictor, step_predictor(options.stack, job, cluster, options.cluster));
  REGATTA_TRY(problem, problem_of(job, cluster, predictor));
  const auto sizes = [&] {
    const SearchProgress progress(stderr, "searching on several numbers of servers");
    return plan::plan_cluster_sizes(problem, {.steps = job.steps});
  }();
  if (!sizes) return sizes.error();
  REGATTA_TRY(request,
              job_plan::planned_request(
                  {.name = job.name, .cluster = cluster, .problem = problem, .sizes = *sizes}));
  request.queue = options.queue;
  request.priority = options.priority;
  print_now("pending:\n" + sched::pending_job_text(request));
  return {};
}

}  // namespace

void add_sched_request(CLI::App& sched, int& exit_status) {
  auto options = std::make_shared<SchedRequestOptions>();
  auto* command = add_command(
      sched, "request",
      "Plan a training job and print what it asks of the scheduler: gang, throughput, topology",
      "regatta sched request examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml",
      [options, &exit_status] {
        const Status status = run_sched_request(*options);
        exit_status = status ? 0 : report_error(status.error());
      });
  command->add_option("job", options->job, "Training job: docs/formats/job.md")
      ->required()
      ->type_name("JOB");
  command->add_option("--cluster", options->cluster, "Cluster file")->required()->type_name("FILE");
  command->add_option("--stack", options->stack, "Software stack that predicts steps")
      ->type_name("STACK")
      ->check(not_empty());
  command->add_option("--queue", options->queue, "Queue in which the job waits")
      ->type_name("QUEUE")
      ->check(not_empty());
  command->add_option("--priority", options->priority, "Of the job; higher goes first (0)")
      ->type_name("N")
      ->check(whole_number(-1'000'000'000, 1'000'000'000));
}

}  // namespace regatta::cli
