#include "regatta/app/cli/internal/plan_command.h"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/plan_calibrate.h"
#include "regatta/app/cli/internal/plan_diff.h"
#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/app/cli/internal/plan_replay.h"
#include "regatta/app/cli/internal/plan_show.h"
#include "regatta/app/cli/internal/plan_what_if.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/planning/plan/launch.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::cli {
namespace {

int plan_job(const PlanOptions& options) {
  // Not left to the command line's library: `plan replay` needs neither.
  if (options.job.empty() || options.cluster.empty()) {
    return report_error({Code::kInvalidInput,
                         std::string(options.job.empty() ? "plan: JOB" : "plan: --cluster") +
                             " is missing; write it like: regatta plan JOB --cluster CLUSTER"});
  }
  const auto cluster = load_cluster(options.cluster);
  if (!cluster) return report_error(cluster.error());
  const auto job = load_job_with(options.job, options.strategy, options.constraints);
  if (!job) return report_error(job.error());
  return show_plans(options, *job, *cluster);
}

// The flags that exclude each other across groups.
struct SearchFlags {
  CLI::Option* exact;
  CLI::Option* compare;
  CLI::Option* extended;
  CLI::Option* exhaustive;
  CLI::Option* frontier;
};

// The options that say what is kept and what is searched.
SearchFlags add_search_options(CLI::App& command, PlanOptions& options) {
  command
      .add_option(
          "--strategy", options.strategy,
          "Values to keep, before those of the job; the others are searched: '{tp: 2, pp: 4}'")
      ->type_name("MAP")
      ->check(not_empty());
  command
      .add_option("--constraint", options.constraints,
                  "A condition that every plan meets: 'pp <= 8', 'zero in {0, 1}'; repeatable")
      ->type_name("CONDITION")
      ->check(not_empty());
  SearchFlags flags{};
  flags.exact = command.add_flag(
      "--exact", options.exact,
      "Price the strategy as it stands, keys that it leaves out at their defaults");
  flags.compare = command.add_option(
      "--compare", options.compared,
      "A strategy of your own beside the best: '{tp: 8, pp: 4}'; the rest of it is searched; "
      "repeatable");
  flags.compare->type_name("MAP")->check(not_empty())->excludes(flags.exact);
  command.add_option("--top", options.top, "Plans in each list")
      ->type_name("N")
      ->check(whole_number(1, kMostPlans))
      ->capture_default_str();
  command
      .add_option("--stack", options.stack,
                  "GPUs: the software stack that trains; an unknown name lists them all")
      ->type_name("NAME")
      ->check(not_empty());
  flags.extended = command.add_flag(
      "--extended-search,--every-form", options.every_form,
      "GPUs: also schedules that split the backward pass, offload, hybrid sharding "
      "(--every-form is the old name)");
  flags.exhaustive = command.add_flag("--exhaustive", options.exhaustive,
                                      "Evaluate every strategy, without bounds");
  flags.frontier =
      command.add_flag("--frontier", options.frontier,
                       "Also list the plans that no other beats in both time and memory");
  flags.exact->excludes(flags.frontier)->excludes(flags.exhaustive)->excludes(flags.extended);
  return flags;
}

// How many servers, and which.
void add_server_options(CLI::App& command, PlanOptions& options, const SearchFlags& flags) {
  auto* sizes = command.add_flag(
      "--sizes", options.sizes,
      "The best plan for several numbers of servers, with their time, cost and devices");
  sizes->excludes(flags.compare)->excludes(flags.frontier)->excludes(flags.exhaustive);
  sizes->excludes(flags.exact);
  command
      .add_option("--objective", options.objective,
                  "With --sizes: what selects one: time (the default), cost, devices or memory")
      ->type_name("WHAT")
      ->check(one_of(plan::objective_names()))
      ->needs(sizes);
  command
      .add_option("--within", options.within,
                  "With --sizes: the cheapest size that ends in this time: 30d, 12h")
      ->type_name("TIME")
      ->check(not_empty())
      ->needs(sizes);
  command
      .add_option("--steps", options.steps,
                  "With --sizes: steps of the job, instead of those of its file")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000))
      ->needs(sizes);
  command
      .add_option("--price", options.price, "With --sizes: price of a device-hour, in any currency")
      ->check(number_up_to(kHighestPrice))
      ->needs(sizes);
  command.add_option("--without", options.without_text, "Servers that are not available: s3,s7")
      ->type_name("NAMES")
      ->check(not_empty());
  command.add_option("--servers", options.servers, "Number of servers to use")
      ->type_name("N")
      ->check(whole_number(1, topo::kMaxServers));
}

void add_output_options(CLI::App& command, PlanOptions& options) {
  auto* launch = command.add_option(
      "--launch", options.launcher,
      "GPUs: print a script of the best plan that a framework can run: megatron, megatron-bridge, "
      "deepspeed or torchtitan");
  launch->type_name("FRAMEWORK")->check(one_of(plan::launcher_names()));
  command.add_option("--html", options.html, "Write a page of the plan and its timeline")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--trace", options.trace, "Write the timeline for Perfetto")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_flag("--json", options.json, "Print JSON")->excludes(launch);
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "Find the fastest parallel plan for a job");
  command->add_option("JOB", options->job, "Job file")->check(not_empty());
  command->add_option("--cluster", options->cluster, "Cluster file")
      ->type_name("CLUSTER")
      ->check(not_empty());
  const SearchFlags flags = add_search_options(*command, *options);
  add_server_options(*command, *options, flags);
  add_output_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  regatta plan examples/job.yaml --cluster examples/cluster.yaml\n"
      "  regatta plan examples/job.yaml --cluster examples/cluster.yaml --strategy '{tp: 2}'\n"
      "  regatta plan examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml "
      "--constraint 'pp <= 8'\n"
      "  regatta plan examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml "
      "--compare '{tp: 8}'\n"
      "  regatta plan examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml "
      "--html plan.html\n"
      "  regatta plan examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml "
      "--launch megatron\n"
      "  regatta plan examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml --sizes "
      "--price 2 --steps 95367");
  command->callback([command, options, &exit_status] {
    if (!command->get_subcommands().empty()) return;
    const Status names = read_server_names(*options);
    exit_status = names ? plan_job(*options) : report_error(names.error());
  });
  add_plan_calibrate(*command, exit_status);
  add_plan_diff(*command, exit_status);
  add_plan_replay(*command, exit_status);
  add_plan_what_if(*command, exit_status);
}

}  // namespace regatta::cli
