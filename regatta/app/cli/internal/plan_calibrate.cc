#include "regatta/app/cli/internal/plan_calibrate.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/calibrated_stack.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/plan_search.h"
#include "regatta/planning/replay/stack_fit.h"
#include "regatta/planning/replay/training_log.h"

namespace regatta::cli {
namespace {

using replay::PublishedRun;
using replay::TrainingLog;

constexpr std::size_t kMostBytes = 256U << 20U;  // of a log

struct CalibrateOptions {
  std::vector<std::string> files;
  std::string cluster;
  std::string job;
  std::string strategy;
  std::string stack;
  std::string out;
  bool json = false;
};

// Stands in for what the files leave unsaid.
struct Unsaid {
  std::optional<topo::Cluster> cluster;
  std::optional<workload::Job> job;
  workload::StrategyRequest strategy;
};

struct OwnRunsRead {
  std::vector<PublishedRun> runs;
  std::vector<TrainingLog> logs;
};

Result<Unsaid> load_unsaid(const CalibrateOptions& options) {
  Unsaid unsaid;
  if (!options.cluster.empty()) {
    REGATTA_TRY(cluster, load_cluster(options.cluster));
    if (!plan::is_gpu_cluster(cluster)) {
      return Error{Code::kInvalidInput,
                   fmt::format("{}: it has no GPUs; give the cluster that the runs were on, or "
                               "measure this one with regatta measure",
                               options.cluster)};
    }
    if (plan::has_several_types(cluster)) {
      return Error{Code::kInvalidInput,
                   fmt::format("{}: its servers are of several types; give a cluster with those "
                               "that the runs were on",
                               options.cluster)};
    }
    unsaid.cluster = std::move(cluster);
  }
  if (!options.job.empty()) {
    REGATTA_TRY(job, load_job(options.job));
    unsaid.strategy = job.strategy;
    unsaid.job = std::move(job);
  }
  if (!options.strategy.empty()) {
    REGATTA_TRY(request, workload::parse_strategy(options.strategy, "--strategy"));
    unsaid.strategy = workload::merged(request, unsaid.strategy);
  }
  return unsaid;
}

replay::LogContext context_of(const CalibrateOptions& options, const Unsaid& unsaid) {
  replay::LogContext context{.strategy = unsaid.strategy, .stack = options.stack};
  if (unsaid.job) {
    context.model = &unsaid.job->model;
    context.global_batch = unsaid.job->global_batch;
    context.precision = unsaid.job->precision;
  }
  if (unsaid.cluster) {
    context.server = &unsaid.cluster->type_of(ServerId{0});
    context.devices =
        static_cast<int>(unsaid.cluster->servers.size()) * context.server->device_count;
  }
  return context;
}

Result<OwnRunsRead> read_runs(const CalibrateOptions& options, const Unsaid& unsaid) {
  OwnRunsRead read;
  const replay::LogContext context = context_of(options, unsaid);
  for (const std::string& file : options.files) {
    REGATTA_TRY(text, read_named_file(file, kMostBytes));
    if (replay::is_table_of_runs(text)) {
      REGATTA_TRY(runs, replay::read_own_runs(file, text,
                                              {.server = context.server, .stack = options.stack}));
      read.runs.insert(read.runs.end(), runs.begin(), runs.end());
      continue;
    }
    REGATTA_TRY(log, replay::read_training_log(text, file));
    REGATTA_TRY(run, replay::run_of_log(log, context));
    read.logs.push_back(std::move(log));
    read.runs.push_back(std::move(run));
  }
  return read;
}

// Drops the runs of other stacks than the one that is calibrated: the given one, or that of all.
Result<const cost::SoftwareStack*> keep_one_stack(const std::string& given,
                                                  std::vector<PublishedRun>& runs) {
  std::set<std::string> names;
  for (const PublishedRun& run : runs)
    names.insert(run.stack);
  if (given.empty() && names.size() > 1) {
    return Error{Code::kInvalidInput,
                 fmt::format("the runs are of the stacks {}; choose one of them with --stack",
                             join({names.begin(), names.end()}, ", "))};
  }
  const std::string name = !given.empty() || names.empty() ? given : *names.begin();
  const auto others =
      std::erase_if(runs, [&](const PublishedRun& run) { return run.stack != name; });
  if (others > 0) {
    std::fprintf(stderr, "regatta: note: %s of other stacks than %s left out\n",
                 pluralized(others, "run").c_str(), name.c_str());
  }
  if (runs.empty()) {
    return Error{Code::kInvalidInput,
                 fmt::format("none of the runs is of stack {}; choose one of {} with --stack", name,
                             join({names.begin(), names.end()}, ", "))};
  }
  return cost::find_software_stack(name);
}

// The runs are on the devices of the cluster, or all on the same.
Status check_devices(const std::vector<PublishedRun>& runs, const Unsaid& unsaid) {
  const std::string& device = unsaid.cluster ? unsaid.cluster->type_of(ServerId{0}).device.name
                                             : runs.front().server.device.name;
  for (const PublishedRun& run : runs) {
    if (run.server.device.name == device) continue;
    return Error{
        Code::kInvalidInput,
        fmt::format("{}: the run is on {}, {} {}; calibrate each cluster on runs of its own",
                    run.name, run.server.device.name,
                    unsaid.cluster ? "the cluster has" : "others are on", device)};
  }
  return {};
}

// Checked here, because tables and logs name their stack only where this one is not given.
Status check_stack(const std::string& name) {
  if (name.empty() || cost::find_software_stack(name) != nullptr) return {};
  return Error{Code::kInvalidInput,
               fmt::format("--stack: there is no software stack '{}'; choose one of {}",
                           printable(name, 60), join(cost::software_stack_names(), ", "))};
}

std::string place_of(const CalibrateOptions& options) {
  if (!options.out.empty()) return options.out;
  return options.cluster.empty() ? "" : calibrated_path(options.cluster);
}

Status calibrate(const CalibrateOptions& options) {
  const OutputFile place{"--out", place_of(options)};
  std::vector<std::string> inputs = options.files;
  for (const std::string& file : {options.cluster, options.job})
    if (!file.empty()) inputs.push_back(file);
  REGATTA_TRY_DO(check_outputs(std::span(&place, 1), inputs));
  REGATTA_TRY_DO(check_stack(options.stack));
  REGATTA_TRY(unsaid, load_unsaid(options));
  REGATTA_TRY(read, read_runs(options, unsaid));
  REGATTA_TRY(stack, keep_one_stack(options.stack, read.runs));
  REGATTA_TRY_DO(check_devices(read.runs, unsaid));
  REGATTA_TRY(own, replay::calibrate_stack(*stack, read.runs));
  own.calibration.source = fmt::format("{} of {}", pluralized(own.calibration.runs(), "run"),
                                       shortened_list(options.files, 3));
  OutputFiles outputs;
  outputs.add(place, [&] { return cost::stack_calibration_to_json(own.calibration); });
  REGATTA_TRY_DO(outputs.write());
  const report::OwnCalibrationReport shown{*stack, own, read.logs, place.path};
  fmt::print("{}", options.json ? report::own_calibration_json(shown).dump(2) + "\n"
                                : report::own_calibration_text(shown));
  return {};
}

}  // namespace

void add_plan_calibrate(CLI::App& plan, int& exit_status) {
  const auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = plan.add_subcommand(
      "calibrate", "Fit the software stack to your own runs, for better predictions");
  command
      ->add_option("FILE", options->files,
                   "Tables of runs (runs.csv), and logs of Megatron-LM, Megatron-Bridge, NeMo, "
                   "torchtitan and DeepSpeed")
      ->required()
      ->check(not_empty());
  command
      ->add_option("--cluster", options->cluster,
                   "Cluster file of the runs; the fit is kept beside it")
      ->type_name("CLUSTER")
      ->check(not_empty());
  command->add_option("--job", options->job, "Job file: what logs do not say, and their model")
      ->type_name("JOB")
      ->check(not_empty());
  command
      ->add_option("--strategy", options->strategy,
                   "Values that logs do not say: '{micro_batch: 1, zero: 1}'")
      ->type_name("MAP")
      ->check(not_empty());
  command->add_option("--stack", options->stack, "The software stack of the runs")
      ->type_name("NAME")
      ->check(not_empty());
  command->add_option("--out", options->out, "File of the fit, instead of beside the cluster file")
      ->type_name("FILE")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  regatta plan calibrate runs.csv\n"
      "  regatta plan calibrate runs.csv train.log --cluster cluster.yaml\n"
      "saves cluster.calibrated.json; `regatta plan` uses it.");
  command->callback([options, &exit_status] {
    const Status done = calibrate(*options);
    exit_status = done ? 0 : report_error(done.error());
  });
}

}  // namespace regatta::cli
