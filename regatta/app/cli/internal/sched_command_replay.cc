#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/sched_command.h"
#include "regatta/app/cli/internal/sched_load.h"
#include "regatta/app/cli/internal/sched_replay_run.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/platform/cluster_replay/trace_tables.h"

namespace regatta::cli {
namespace {

constexpr int kJobsMax = 10'000'000;
constexpr int kReplicasMax = 1000;
constexpr TimeRange kCheckpoints{{60}, {366 * 86400.0}, "30min"};
constexpr Seconds kRestart{120};

struct SchedReplayOptions {
  std::string trace;
  int jobs = 0;
  TraceFlags shape;
  std::string checkpoint;  // "": jobs make none
  FailureFlags failures;
  ReplayRunOptions run;
};

// Traces do not say whether jobs save checkpoints.
Status set_checkpoints(const std::string& interval_text,
                       std::vector<cluster_replay::TracedJob>& jobs) {
  if (interval_text.empty()) return {};
  REGATTA_TRY(interval, time_flag("--checkpoint", interval_text, kCheckpoints));
  bool is_for_any = false;
  for (cluster_replay::TracedJob& job : jobs) {
    if (mixing::has_latency_target(job.request.job_class)) continue;
    job.request.checkpointing = {.interval = interval, .write = {}, .restart = kRestart};
    is_for_any = true;
  }
  if (is_for_any) return {};
  return Error{Code::kInvalidInput,
               "--checkpoint: the trace has services alone, which save none; leave it out"};
}

Status run_sched_replay(const SchedReplayOptions& options) {
  cluster_replay::ReplayInput input;
  REGATTA_TRY_DO(check_failure_flags(options.failures, false));
  REGATTA_TRY(jobs, load_trace(options.trace, options.jobs, options.shape));
  REGATTA_TRY_DO(set_checkpoints(options.checkpoint, jobs));
  REGATTA_TRY(nodes, load_nodes(options.run.cluster));
  REGATTA_TRY(quotas, cluster_replay::queues_of(jobs));
  input.jobs = std::move(jobs);
  input.nodes = std::move(nodes);
  input.quotas = std::move(quotas);
  std::string load = options.trace;
  REGATTA_TRY_DO(add_traced_failures(options.failures, input, load));
  return run_replays(options.run, load, input, {options.trace, options.failures.trace});
}

}  // namespace

void add_sched_replay(CLI::App& sched, int& exit_status) {
  auto options = std::make_shared<SchedReplayOptions>();
  auto* command = add_command(
      sched, "replay", "Replay a trace of jobs on a cluster under one or more policies",
      "regatta sched replay philly_jobs.csv --cluster examples/sched_cluster.yaml --jobs 5000 "
      "--policy regatta backfill",
      [options, &exit_status] {
        const Status status = run_sched_replay(*options);
        exit_status = status ? 0 : report_error(status.error());
      });
  command
      ->add_option("trace", options->trace,
                   "Jobs of Philly, openb or online services, use of GPUs, or requests")
      ->required()
      ->type_name("TRACE")
      ->check(not_empty("write it"));
  command->add_option("--jobs", options->jobs, "Replay only the first so many (all)")
      ->type_name("N")
      ->check(whole_number(1, kJobsMax));
  command
      ->add_option(
          "--past", options->shape.past,
          "Use of GPUs, requests: the first part, which is known; the rest is replayed (6h)")
      ->type_name("TIME");
  command
      ->add_option("--replicas", options->shape.replicas,
                   "Requests: replicas of a device that serve the highest minute of a type (20)")
      ->type_name("N")
      ->check(whole_number(1, kReplicasMax));
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "Jobs but services save so often, and restart in 2 min (never, and at once)")
      ->type_name("TIME");
  add_failure_options(*command, options->failures);
  add_replay_options(*command, options->run);
}

}  // namespace regatta::cli
