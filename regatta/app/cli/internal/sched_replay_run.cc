#include "regatta/app/cli/internal/sched_replay_run.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/sched_inputs.h"
#include "regatta/app/cli/internal/sched_load.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/app/report/sched_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"

namespace regatta::cli {
namespace {

constexpr double kInterferenceMost = 2;
constexpr double kMoneyMost = 1e6;  // of a device and hour
constexpr TimeRange kIntervals{{0}, {86400}, "60s"};

Result<cluster_replay::ReplayResult> replay_once(const cluster_replay::ReplayInput& input,
                                                 const sched::SchedulingPolicy& policy,
                                                 const cluster_replay::ReplayOptions& base,
                                                 std::string* log) {
  SearchProgress shown(stderr, "replaying with policy " + policy.name);
  cluster_replay::ReplayOptions options = base;
  options.repeat_interval = {3600};
  options.clock = [] { return os::monotonic_now().value; };
  options.progress = [&](const cluster_replay::ReplayProgress& at) {
    shown.set_title(
        fmt::format("replaying with policy {}: day {:.1f}, {} of {} jobs ended, {} wait",
                    policy.name, at.now.value / 86400, at.ended, input.jobs.size(), at.waiting));
  };
  if (log != nullptr)
    options.log = [log](std::string_view line) {
      *log += line;
      *log += '\n';
    };
  return cluster_replay::replay_cluster(input, policy, options);
}

Result<cluster_replay::ReplayOptions> options_of(const ReplayRunOptions& run) {
  cluster_replay::ReplayOptions options;
  REGATTA_TRY(interval, time_flag("--interval", run.interval, kIntervals));
  options.decision_interval = interval;
  options.profile_interval = {3600};
  if (run.interference.empty()) return options;
  const auto factor = parse_number<double>(run.interference);
  if (!factor) {
    REGATTA_TRY(fitted, load_interference(run.interference));
    options.interference = fitted;
    return options;
  }
  if (!(*factor >= 0 && *factor <= kInterferenceMost))
    return Error{Code::kInvalidInput,
                 fmt::format("--interference: '{}' is not a number from 0 to {:g}; correct it",
                             printable(run.interference, 64), kInterferenceMost)};
  options.interference = *factor;
  return options;
}

// Reports tell policies apart by their names.
Result<std::vector<sched::SchedulingPolicy>> load_policies(std::vector<std::string> given,
                                                           std::optional<double> interference) {
  if (given.empty()) given = {"regatta"};
  std::vector<sched::SchedulingPolicy> policies;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (std::find(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(i), given[i]) !=
        given.begin() + static_cast<std::ptrdiff_t>(i))
      return Error{Code::kInvalidInput, fmt::format("--policy: {} is given twice; leave one out",
                                                    printable(given[i], 64))};
    REGATTA_TRY(policy, load_policy(given[i], interference));
    for (std::size_t other = 0; other < i; ++other)
      if (policies[other].name == policy.name)
        return Error{Code::kInvalidInput,
                     fmt::format("--policy: {} and {} have the name {}; give one of the files "
                                 "another name",
                                 printable(given[other], 64), printable(given[i], 64),
                                 printable(policy.name, 64))};
    policies.push_back(std::move(policy));
  }
  return policies;
}

}  // namespace

void add_replay_options(CLI::App& command, ReplayRunOptions& options) {
  command
      .add_option("--cluster", options.cluster,
                  "Cluster file, state file, or table of nodes (openb, spot)")
      ->required()
      ->type_name("FILE")
      ->check(not_empty("write it"));
  command
      .add_option(
          "--policy", options.policies,
          "fifo, backfill, regatta, attained_service, or a file; several are compared (regatta)")
      ->type_name("POLICY...");
  command.add_option("--interval", options.interval, "Least time between two decisions (60s)")
      ->type_name("TIME");
  command
      .add_option("--interference", options.interference,
                  "How jobs that share a device slow each other: a factor, or a table of measured "
                  "pairs of jobs (0.15)")
      ->type_name("FACTOR|FILE");
  command.add_option("--html", options.html, "Write a page with curves")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--log", options.log, "Write a line for each event of the first policy")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--price", options.price, "Of a device and hour: what lost work costs")
      ->type_name("MONEY")
      ->check(number_up_to(kMoneyMost));
  command.add_flag("--json", options.json, "Print JSON");
}

Status run_replays(const ReplayRunOptions& options, const std::string& load,
                   const cluster_replay::ReplayInput& input, std::vector<std::string> inputs) {
  REGATTA_TRY(base, options_of(options));
  const OutputFile html{"--html", options.html};
  const OutputFile log{"--log", options.log};
  std::erase(inputs, "");  // a trace that is not given
  inputs.push_back(options.cluster);
  if (!options.interference.empty()) inputs.push_back(options.interference);
  for (const std::string& policy : options.policies)
    if (policy.find_first_of("/.") != std::string::npos) inputs.push_back(policy);
  const std::vector<OutputFile> outputs = {html, log};
  REGATTA_TRY_DO(check_outputs(std::span(outputs), std::span<const std::string>(inputs)));
  std::optional<double> interference;
  if (!options.interference.empty()) interference = base.interference;
  REGATTA_TRY(policies, load_policies(options.policies, interference));
  report::ReplayReport report{.load = load,
                              .cluster = options.cluster,
                              .nodes = static_cast<int>(input.nodes.size()),
                              .devices = 0,
                              .price = options.price,
                              .replays = {}};
  for (const sched::ClusterNode& node : input.nodes)
    report.devices += node.devices;
  std::string events;
  for (const sched::SchedulingPolicy& policy : policies) {
    const bool is_logged = !options.log.empty() && report.replays.empty();
    REGATTA_TRY(result, replay_once(input, policy, base, is_logged ? &events : nullptr));
    report.replays.push_back({.policy = policy.name, .result = std::move(result)});
  }
  OutputFiles files;
  files.add(html, [&] { return report::replay_html(report); });
  files.add(log, [&] { return events; });
  REGATTA_TRY_DO(files.write());
  print_now(options.json ? report::replay_json(report).dump(2) + "\n"
                         : report::replay_text(report));
  return {};
}

}  // namespace regatta::cli
