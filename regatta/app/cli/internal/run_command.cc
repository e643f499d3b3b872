#include "regatta/app/cli/internal/run_command.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <sys/utsname.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/app/cli/internal/run_training.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/report/network_report.h"
#include "regatta/app/report/pages.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/app/report/run_result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/model/workload/runtime_support.h"
#include "regatta/planning/plan/simulated_plan.h"
#include "regatta/runtime/agent/session.h"

namespace regatta::cli {
namespace {

constexpr long long kStepsMax = 1000000000;  // as in a job file

struct RunOptions {
  std::string job;
  std::string cluster;
  std::string compare;
  std::string strategy;
  std::string out;
  std::string ports;
  int sweep = 0;
  int sweep_steps = 12;
  int compare_steps = 0;
  int steps = 0;
  bool resume = false;
  bool json = false;
  bool no_report = false;
};

// A run, checked and planned before anything is started.
struct Prepared {
  PlanningInputs inputs;
  plan::SimulatedSearchResult search;
  PortChoice ports;
  std::optional<plan::SimulatedPlan> compare;
  std::vector<plan::SimulatedPlan> sweep;
};

// The servers of a lab see the files of this machine, so what is missing shows before it comes up.
Status check_data(const PlanningInputs& inputs) {
  std::error_code ignored;
  const bool is_lab = inputs.cluster.servers.front().address.empty();
  if (!is_lab || std::filesystem::exists(inputs.job.data_text, ignored)) return {};
  return Error{Code::kInvalidInput,
               fmt::format("job {}: data.text: {}: no such file or folder; correct the path",
                           inputs.job.name, inputs.job.data_text)};
}

Result<Prepared> prepare(const RunOptions& options) {
  Prepared prepared;
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  REGATTA_TRY_DO(check_devices_run_here(cluster, "run"));
  REGATTA_TRY(inputs, load_planning_inputs(options.job, options.cluster, options.strategy));
  if (options.steps > 0) inputs.job.steps = options.steps;
  if (options.resume && inputs.job.checkpoint.folder.empty()) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}: --resume needs a checkpoint folder; add checkpoint: {{folder: "
                             "...}} to the job",
                             options.job)};
  }
  if (const Status runnable = workload::check_runnable(inputs.job); !runnable)
    return Error{runnable.error().code, "run: " + runnable.error().message};
  REGATTA_TRY_DO(check_data(inputs));
  REGATTA_TRY(ports, choose_ports(options.ports, inputs.cluster));
  prepared.ports = std::move(ports);
  REGATTA_TRY(search, plan::search_simulated_plans(inputs.job, inputs.cluster, inputs.rates));
  if (!options.compare.empty()) {
    REGATTA_TRY(compare, plan::pure_data_parallel(inputs.job, inputs.cluster, inputs.rates));
    prepared.compare = std::move(compare);
  }
  if (options.sweep > 0) prepared.sweep = plan::sweep_selection(search, options.sweep);
  prepared.inputs = std::move(inputs);
  prepared.search = std::move(search);
  return prepared;
}

void print_plans(std::FILE* out, const Prepared& prepared) {
  fmt::print(out, "{}",
             report::chosen_plan_text({.job = prepared.inputs.job,
                                       .cluster = prepared.inputs.cluster,
                                       .rates_source = prepared.inputs.rates.source,
                                       .result = prepared.search,
                                       .ports_method = prepared.ports.method,
                                       .ports_reason = prepared.ports.why}));
  std::fflush(out);
}

// "2 cores of Intel(R) Xeon(R) ..., Linux 6.1": results of different machines do not compare.
std::string describe_machine() {
  std::string model = "an unknown processor";
  if (const auto cpuinfo = os::read_file("/proc/cpuinfo")) {
    for (const auto& line : split(*cpuinfo, '\n')) {
      if (line.rfind("model name", 0) != 0) continue;
      model = trim(std::string_view(line).substr(line.find(':') + 1));
      break;
    }
  }
  utsname system = {};
  const bool known = ::uname(&system) == 0;
  return fmt::format("{} cores of {}{}", std::thread::hardware_concurrency(), model,
                     known ? fmt::format(", {} {}", system.sysname, system.release) : "");
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

// Extra runs leave the job's checkpoints alone.
TrainingRequest extra_run(const Prepared& prepared, const plan::SimulatedPlan& plan, int steps) {
  TrainingRequest request{.job = prepared.inputs.job, .plan = plan};
  request.job.checkpoint = {};
  request.job.steps = steps;
  return request;
}

// Where progress goes, the flag that ends it, and where flight files go when it fails.
struct Live {
  std::FILE* out = nullptr;
  const std::atomic<bool>& stop;
  std::string flight_dir;
};

// Trains one plan and prints its end.
Result<report::PlanRun> train_and_print(agent::Session& session, const Prepared& prepared,
                                        TrainingRequest request, const Live& live) {
  request.out = live.out;
  request.ports = prepared.ports;
  request.flight_dir = live.flight_dir;
  auto run = train_plan(session, prepared.inputs.cluster, request, live.stop);
  if (run) {
    fmt::print(live.out, "{}", report::trained_plan_text(request.title, *run));
    std::fflush(live.out);
  }
  return run;
}

Result<report::RunResult> train_all(const Prepared& prepared, const RunOptions& options,
                                    const Live& live) {
  std::FILE* out = live.out;
  report::RunResult result;
  result.started_at = utc_now();
  result.machine = describe_machine();
  result.job = prepared.inputs.job;
  result.cluster = prepared.inputs.cluster;
  result.rates_source = prepared.inputs.rates.source;
  result.search = prepared.search;
  REGATTA_TRY(session, agent::Session::open(prepared.inputs.cluster, {}));
  if (session.lab()) {
    result.speed_note = session.lab()->speed_note;
    fmt::print(out, "{}", report::lab_speed_text(*session.lab()));
    std::fflush(out);
  }
  TrainingRequest request{.job = prepared.inputs.job,
                          .plan = prepared.search.ranked.front(),
                          .resume = options.resume,
                          .title = prepared.inputs.job.name};
  REGATTA_TRY(main, train_and_print(session, prepared, request, live));
  result.main = std::move(main);
  if (prepared.compare) {
    request = extra_run(prepared, *prepared.compare,
                        options.compare_steps > 0 ? options.compare_steps
                                                  : std::min(prepared.inputs.job.steps, 20));
    request.title = options.compare;
    REGATTA_TRY(compare, train_and_print(session, prepared, request, live));
    result.compare = std::move(compare);
  }
  for (std::size_t i = 0; i < prepared.sweep.size(); ++i) {
    request = extra_run(prepared, prepared.sweep[i], options.sweep_steps);
    request.title = fmt::format("sweep {}/{} {}", i + 1, prepared.sweep.size(),
                                workload::to_string(prepared.sweep[i].strategy));
    REGATTA_TRY(run, train_and_print(session, prepared, request, live));
    result.sweep.push_back(std::move(run));
  }
  return result;
}

// The folders that were made for the report: its own and the missing ones above. They are removed
// again where nothing was written into them.
class NewFolders {
 public:
  explicit NewFolders(const std::string& folder) {
    std::error_code ignored;
    for (auto one = std::filesystem::absolute(folder, ignored).lexically_normal();
         !one.empty() && !std::filesystem::exists(one, ignored); one = one.parent_path())
      missing_.push_back(one);
  }
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  ~NewFolders() {
    std::error_code is_not_empty;
    for (const auto& one : missing_)
      std::filesystem::remove(one, is_not_empty);
  }

 private:
  std::vector<std::filesystem::path> missing_;  // the innermost first
};

Status make_report_folder(const std::string& folder) {
  if (const Status made = os::make_folder(folder); !made) {
    return Error{Code::kInvalidInput, made.error().message + "; choose another place with --out"};
  }
  return check_writable(folder, "--out");
}

Status write_files(const report::RunResult& result, const std::string& folder) {
  OutputFiles files;
  files.add({"--out", folder + "/result.json"}, [&] { return report::result_json_text(result); });
  files.add({"--out", folder + "/trace.json"}, [&] { return report::trace_json_text(result); });
  files.add({"--out", folder + "/report.html"}, [&] { return report::report_html(result); });
  return files.write();
}

int run(const RunOptions& options) {
  // With --json standard output is for the program that reads it.
  std::FILE* out = options.json ? stderr : stdout;
  const auto prepared = prepare(options);
  if (!prepared) return report_error(prepared.error());
  const std::string folder =
      options.out.empty() ? "regatta-out/" + prepared->inputs.job.name : options.out;
  const NewFolders new_folders(folder);
  if (!options.no_report) {
    // Before the training, not after it, is the time to learn that it cannot be written.
    if (const Status made = make_report_folder(folder); !made) return report_error(made.error());
  }
  print_warnings(prepared->inputs.warnings);
  print_plans(out, *prepared);
  std::error_code ignored;
  const std::string flight_dir =
      options.no_report ? "" : std::filesystem::absolute(folder, ignored).string();
  const auto result = train_all(*prepared, options, {out, watch_stop_signals(), flight_dir});
  if (!result) return report_error(result.error());
  fmt::print(out, "\n{}", report::text_report(*result));
  if (!options.no_report) {
    if (const Status status = write_files(*result, folder); !status) {
      return report_error(status.error());
    }
    fmt::print(out, "\nwritten: {0}/report.html, {0}/trace.json, {0}/result.json\n", folder);
  }
  if (options.json) std::fputs(report::result_json_text(*result).c_str(), stdout);
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand(
      "run", "Plan a training job, train it on CPU devices, show prediction beside measurement");
  command->footer(
      "Example:\n"
      "  regatta run examples/job.yaml --cluster examples/cluster.yaml --compare pure-dp");
  auto options = std::make_shared<RunOptions>();
  command->add_option("JOB", options->job, "Job file")->required()->check(not_empty());
  command->add_option("--cluster", options->cluster, "Cluster file")
      ->type_name("CLUSTER")
      ->required()
      ->check(not_empty());
  command
      ->add_option("--compare", options->compare,
                   "Also train this plan: pure-dp, plain data parallelism")
      ->type_name("PLAN")
      ->check(one_of({"pure-dp"}));
  command
      ->add_option("--compare-steps", options->compare_steps,
                   "Steps of the comparison (default: the job's, at most 20)")
      ->type_name("N")
      ->check(whole_number(1, kStepsMax));
  command
      ->add_option("--strategy", options->strategy,
                   "Values to keep; the others are searched: '{tp: 2, pp: 4}'")
      ->type_name("MAP")
      ->check(not_empty());
  command->add_option("--sweep", options->sweep, "Also train N different plans")
      ->type_name("N")
      ->check(whole_number(1, 1000));
  command->add_option("--sweep-steps", options->sweep_steps, "Steps of each plan of the sweep")
      ->type_name("N")
      ->check(whole_number(1, kStepsMax))
      ->capture_default_str();
  command->add_option("--steps", options->steps, "Steps to train instead of the job's")
      ->type_name("N")
      ->check(whole_number(1, kStepsMax));
  command
      ->add_option("--out", options->out,
                   "Folder of the report, result and trace (default: regatta-out/JOB)")
      ->type_name("FOLDER")
      ->check(not_empty());
  command
      ->add_option(
          "--ports", options->ports,
          "Source ports: planned (on different links; default in labs), surveyed or hashed")
      ->type_name("HOW")
      ->check(one_of(port_choices()));
  command->add_flag("--resume", options->resume, "Resume from the newest checkpoint of the job");
  command->add_flag("--json", options->json, "Print result.json; progress goes to standard error");
  command->add_flag("--no-report", options->no_report, "Write no files");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace regatta::cli
