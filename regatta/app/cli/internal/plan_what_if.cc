#include "regatta/app/cli/internal/plan_what_if.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/plan_show.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::cli {
namespace {

struct WhatIfOptions {
  std::string job;
  std::vector<std::string> clusters;
  std::vector<std::string> changes;  // "nic_rate=800Gbps"
  std::string strategy;
  std::string stack;
  double price = 0;  // of a device and hour
  bool json = false;
};

struct Choice {
  std::string name;
  topo::Cluster cluster;
  std::string path;  // of the file that the cluster is from, or was changed from
};

Result<std::vector<Choice>> load_choices(const WhatIfOptions& options) {
  std::vector<Choice> choices;
  for (const std::string& path : options.clusters) {
    REGATTA_TRY(cluster, load_cluster(path));
    choices.push_back({cluster.name, std::move(cluster), path});
  }
  const topo::Cluster first = choices.front().cluster;
  for (const std::string& change : options.changes) {
    auto cluster = plan::changed_cluster(first, change);
    if (!cluster) return Error{cluster.error().code, "--with " + cluster.error().message};
    choices.push_back({first.name + " " + change, *std::move(cluster), options.clusters.front()});
  }
  return choices;
}

// Fails for a cluster that cannot be compared; one without a plan for the job is a row.
Result<report::ComparedCluster> evaluate(const WhatIfOptions& options, const workload::Job& job,
                                         const Choice& choice) {
  const bool is_changed = !options.changes.empty();
  REGATTA_TRY(predictor,
              step_predictor(options.stack, job, choice.cluster, choice.path, is_changed));
  REGATTA_TRY(problem, problem_of(job, choice.cluster, predictor));
  report::ComparedCluster row{.name = choice.name, .devices = problem.devices};
  const int threads = search_threads();
  auto found = plan::fastest_plan(problem, threads);
  if (!found) {
    row.note = found.error().message;
    return row;
  }
  const Seconds step = found->estimate.step.total();
  row.plan = *std::move(found);
  row.tokens_per_s = plan::tokens_per_step(problem) / step.value;
  row.usage = plan::resource_usage(problem, step, 1e9, options.price);
  return row;
}

int compare(const WhatIfOptions& options) {
  if (options.clusters.size() + options.changes.size() < 2) {
    return report_error({Code::kInvalidInput,
                         "plan what-if: nothing to compare; give another --cluster, or a change "
                         "like --with nic_rate=800Gbps"});
  }
  const auto job = load_job_with(options.job, options.strategy);
  if (!job) return report_error(job.error());
  const auto choices = load_choices(options);
  if (!choices) return report_error(choices.error());
  std::vector<report::ComparedCluster> rows;
  for (const Choice& choice : *choices) {
    auto row = evaluate(options, *job, choice);
    if (!row) return report_error(row.error());
    rows.push_back(std::move(*row));
  }
  if (report::reference_rate(rows) <= 0)
    return report_error({Code::kInvalidInput, rows.front().name + ": " + rows.front().note});
  const bool has_price = options.price > 0;
  fmt::print("{}", options.json ? report::compared_clusters_json(rows, has_price).dump(2) + "\n"
                                : report::compared_clusters_text(rows, has_price));
  return 0;
}

}  // namespace

void add_plan_what_if(CLI::App& plan, int& exit_status) {
  const auto options = std::make_shared<WhatIfOptions>();
  CLI::App* command = plan.add_subcommand(
      "what-if", "Compare clusters for a job: time, device hours, energy, cost");
  command->add_option("JOB", options->job, "Job file")->required()->check(not_empty());
  command->add_option("--cluster", options->clusters, "Cluster file; give several to compare them")
      ->required()
      ->type_name("CLUSTER")
      ->check(not_empty());
  command
      ->add_option("--with", options->changes,
                   "Compare with the first cluster after one change: nic_rate=800Gbps, nics=4, "
                   "servers=256, uplink=400Gbps, server=dgx-h100; repeatable")
      ->type_name("KEY=VALUE");
  command
      ->add_option("--strategy", options->strategy,
                   "Values to keep; the others are searched: '{tp: 8}'")
      ->type_name("MAP")
      ->check(not_empty());
  command->add_option("--stack", options->stack, "The software stack that trains")
      ->type_name("NAME")
      ->check(not_empty());
  command->add_option("--price", options->price, "Price of a device-hour, in any currency")
      ->check(number_up_to(kHighestPrice));
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  regatta plan what-if examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml "
      "--with nic_rate=400Gbps --with servers=256 --price 2");
  command->callback([options, &exit_status] { exit_status = compare(*options); });
}

}  // namespace regatta::cli
