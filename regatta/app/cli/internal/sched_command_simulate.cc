#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/sched_command.h"
#include "regatta/app/cli/internal/sched_load.h"
#include "regatta/app/cli/internal/sched_replay_run.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/cluster_replay/generated_load.h"
#include "regatta/platform/cluster_replay/node_events.h"

namespace regatta::cli {
namespace {

constexpr double kLoadMost = 2;
constexpr double kFailuresMost = 10;
constexpr long long kSeedMost = 1'000'000'000;
constexpr TimeRange kDurations{{3600}, {366 * 86400.0}, "30d"};
constexpr TimeRange kRunTimes{{1}, {366 * 86400.0}, "1h"};

struct SchedSimulateOptions {
  std::string duration = "30d";
  std::string run_time = "1h";
  FailureFlags trace;
  double load = 0.8;
  double failures = 0;
  int seed = 1;
  ReplayRunOptions run;
};

Status run_sched_simulate(const SchedSimulateOptions& options) {
  REGATTA_TRY(duration, time_flag("--duration", options.duration, kDurations));
  REGATTA_TRY(run_time, time_flag("--run-time", options.run_time, kRunTimes));
  REGATTA_TRY(repair, repair_time(options.trace));
  if (options.failures > 0 && !options.trace.trace.empty())
    return Error{Code::kInvalidInput,
                 "--failures and --failures-per-day: failures come from a trace or at random; give "
                 "one of them"};
  cluster_replay::ReplayInput input;
  REGATTA_TRY(nodes, load_nodes(options.run.cluster));
  const bool nodes_fail = std::any_of(nodes.begin(), nodes.end(),
                                      [](const auto& node) { return node.failures_per_day > 0; });
  REGATTA_TRY_DO(check_failure_flags(options.trace, options.failures > 0 || nodes_fail));
  const auto seed = static_cast<std::uint64_t>(options.seed);
  REGATTA_TRY(jobs, cluster_replay::generate_jobs(nodes, {.load = options.load,
                                                          .duration = duration,
                                                          .run_time_median = run_time,
                                                          .seed = seed}));
  if (jobs.empty())
    return Error{
        Code::kInvalidInput,
        fmt::format("no job comes within {}; give a longer --duration, a larger --load or a "
                    "shorter --run-time",
                    options.duration)};
  // Failures go on for as long again: jobs end after the last of them has come.
  const bool is_drawn = options.trace.trace.empty();
  if (is_drawn) {
    REGATTA_TRY(events,
                cluster_replay::generate_failures(nodes, {.failures_per_day = options.failures,
                                                          .repair = repair,
                                                          .duration = duration * 2,
                                                          .seed = seed}));
    input.node_events = std::move(events);
  }
  input.jobs = std::move(jobs);
  input.nodes = std::move(nodes);
  std::string load = fmt::format("{} generated jobs, load {:g}", input.jobs.size(), options.load);
  REGATTA_TRY_DO(add_traced_failures(options.trace, input, load));
  return run_replays(options.run, load, input, {options.trace.trace});
}

}  // namespace

void add_sched_simulate(CLI::App& sched, int& exit_status) {
  auto options = std::make_shared<SchedSimulateOptions>();
  auto* command =
      add_command(sched, "simulate", "Simulate random jobs and failures on a cluster",
                  "regatta sched simulate --cluster examples/sched_cluster.yaml --load 0.9 "
                  "--failures-per-day 0.02 --policy regatta backfill --html simulate.html",
                  [options, &exit_status] {
                    const Status status = run_sched_simulate(*options);
                    exit_status = status ? 0 : report_error(status.error());
                  });
  command->add_option("--duration", options->duration, "Time in which jobs come (30d)")
      ->type_name("TIME");
  command
      ->add_option("--load", options->load, "Device time asked for, over that of the cluster (0.8)")
      ->type_name("LOAD")
      ->check(number_up_to(kLoadMost));
  command->add_option("--run-time", options->run_time, "Median run time of jobs (1h)")
      ->type_name("TIME");
  command
      ->add_option("--failures-per-day", options->failures,
                   "Of a node whose file does not say its own (0)")
      ->type_name("N")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const auto number = parse_number<double>(text);
            return number && *number >= 0 && *number <= kFailuresMost
                       ? std::string()
                       : fmt::format("'{}' is not a number from 0 to {:g}; give one like 0.02",
                                     printable(text, 40), kFailuresMost);
          },
          "NUMBER"));
  add_failure_options(*command, options->trace);
  command->add_option("--seed", options->seed, "Of the random jobs and failures (1)")
      ->type_name("N")
      ->check(whole_number(0, kSeedMost));
  add_replay_options(*command, options->run);
}

}  // namespace regatta::cli
