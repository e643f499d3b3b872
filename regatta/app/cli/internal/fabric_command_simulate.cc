// `regatta fabric simulate`: what a scenario's traffic does to the network of a cluster.
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/app/cli/internal/fabric_command.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/cli/internal/plan_show.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/report/fabric_report.h"
#include "regatta/app/report/pages.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/memory.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/scenario_yaml.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::cli {
namespace {

using simulate::Scenario;
using simulate::SimulatedNetwork;
using simulate::SimulationResult;

struct SimulateOptions {
  std::string scenario;
  std::string cluster;
  std::string level;
  std::string html;
  std::string messages;
  bool json = false;
};

// Paths in a scenario are relative to its file.
std::string beside(const SimulateOptions& options, const std::string& path) {
  return (std::filesystem::path(options.scenario).parent_path() / path).string();
}

Result<Scenario> load_scenario(const SimulateOptions& options) {
  REGATTA_TRY(text, read_named_file(options.scenario, kYamlMaxBytes));
  REGATTA_TRY(scenario, simulate::parse_scenario(text, options.scenario));
  for (simulate::TrafficItem& item : scenario.traffic) {
    if (item.trace_file.empty()) continue;
    item.trace_file = beside(options, item.trace_file);
    REGATTA_TRY(trace, read_named_file(item.trace_file, os::kTextFileMost));
    REGATTA_TRY(messages, simulate::parse_trace(trace, item.trace_file));
    item.trace = std::move(messages);
  }
  if (options.level == "packet") scenario.level = simulate::Level::kPacket;
  if (options.level == "mixed") scenario.level = simulate::Level::kMixed;
  if (options.level == "flow") scenario.level = simulate::Level::kFlow;
  return scenario;
}

Result<topo::Cluster> load_cluster_of(const SimulateOptions& options, const Scenario& scenario) {
  if (!options.cluster.empty()) return load_cluster(options.cluster);
  if (!scenario.cluster.empty()) return load_cluster(beside(options, scenario.cluster));
  return Error{Code::kInvalidInput,
               fmt::format("{}: no cluster is named; add cluster: FILE, or --cluster FILE",
                           options.scenario)};
}

Status fill_steps(const SimulateOptions& options, const topo::Cluster& cluster,
                  Scenario& scenario) {
  for (simulate::TrafficItem& item : scenario.traffic) {
    if (item.job.empty()) continue;
    REGATTA_TRY(job, load_job(beside(options, item.job)));
    const SearchProgress progress(stderr, "planning " + job.name);
    REGATTA_TRY(step, plan::plan_job_step(job, cluster, search_threads()));
    const bool aggregates = item.step.aggregates;
    item.step = step.shape;
    item.step.aggregates = aggregates;
    if (!options.json)
      fmt::print("{}", report::job_step_text({item.name, job.name, step.strategy, step.shape}));
  }
  return {};
}

// Writes a line for each message as it is sent; publish() replaces the file.
class MessageFile {
 public:
  static Result<MessageFile> open(const std::string& path) {
    MessageFile file;
    if (path.empty()) return file;
    auto staged = os::StagedFile::begin(path);
    if (!staged)
      return Error{Code::kInvalidInput,
                   staged.error().message + "; choose another place with --messages"};
    file.staged_.emplace(*std::move(staged));
    if (file.staged_->is_plain())
      file.removed_ = std::make_unique<RemoveFileOnSignal>(file.staged_->writing_path());
    file.out_.reset(std::fopen(file.staged_->writing_path().c_str(), "w"));
    if (!file.out_)
      return Error{Code::kInvalidInput, path +
                                            ": cannot be written; choose another place with "
                                            "--messages"};
    std::fputs(report::message_csv_heading().c_str(), file.out_.get());
    return file;
  }
  bool is_open() const { return out_ != nullptr; }
  void add(const Scenario& scenario, const SimulatedNetwork& network,
           const simulate::MessageRecord& one) {
    const std::string line = report::message_csv_line(scenario, network, one);
    if (std::fputs(line.c_str(), out_.get()) < 0 && failed_ == 0) failed_ = errno;
  }
  Status close(const std::string& path) {
    if (!out_) return {};
    if (std::fflush(out_.get()) != 0 && failed_ == 0) failed_ = errno;
    out_.reset();
    if (failed_ == 0) return {};
    return write_error({"--messages", path}, os::errno_error(path, failed_));
  }
  Status publish() {
    if (!staged_) return {};
    const Status published = staged_->publish();
    if (published) return {};
    return write_error({"--messages", ""}, published.error());
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::optional<os::StagedFile> staged_;
  std::unique_ptr<RemoveFileOnSignal> removed_;
  std::unique_ptr<std::FILE, Close> out_;
  int failed_ = 0;  // errno of the first write that failed
};

Result<SimulationResult> simulate_with_progress(const SimulateOptions& options,
                                                const Scenario& scenario,
                                                const SimulatedNetwork& network,
                                                MessageFile& file) {
  SearchProgress progress(stderr, "simulating " + printable(scenario.name, 40));
  simulate::SimulateOptions run;
  run.memory = os::free_memory();
  run.stop = &watch_stop_signals();
  run.on_progress = [&](double now, std::size_t sent, std::size_t all) {
    progress.set_title(
        fmt::format("simulating: {} of {} messages sent at {}", sent, all, format_seconds({now})));
  };
  if (file.is_open())
    run.on_message = [&](const simulate::MessageRecord& one) { file.add(scenario, network, one); };
  REGATTA_TRY(outcome, simulate::run_scenario(scenario, network, run));
  REGATTA_TRY_DO(file.close(options.messages));
  return outcome;
}

// No output replaces an input or another output.
Status check_places(const SimulateOptions& options, const Scenario& scenario) {
  std::vector<std::string> taken = {options.scenario, options.cluster};
  if (!scenario.cluster.empty()) taken.push_back(beside(options, scenario.cluster));
  for (const simulate::TrafficItem& item : scenario.traffic) {
    if (!item.trace_file.empty()) taken.push_back(item.trace_file);
    if (!item.job.empty()) taken.push_back(beside(options, item.job));
  }
  const std::vector<OutputFile> outputs = {{"--html", options.html},
                                           {"--messages", options.messages}};
  return check_outputs(outputs, taken);
}

void print_result(const SimulateOptions& options, const Scenario& scenario,
                  const SimulatedNetwork& network, const SimulationResult& outcome, double took) {
  if (options.json) {
    nlohmann::json all = report::simulation_json(scenario, network, outcome);
    all["simulated_in_s"] = took;
    fmt::print("{}\n", all.dump(2));
    return;
  }
  fmt::print("{}", report::simulation_text(scenario, network, outcome, {took}));
  std::string written;
  for (const std::string& path : {options.html, options.messages})
    if (!path.empty() && !outcome.stopped_at) written += fmt::format("written: {}\n", path);
  if (!written.empty()) fmt::print("\n{}", written);
}

int run_simulate(const SimulateOptions& options) {
  auto scenario = load_scenario(options);
  if (!scenario) return report_error(scenario.error());
  if (const Status good = check_places(options, *scenario); !good)
    return report_error(good.error());
  auto cluster = load_cluster_of(options, *scenario);
  if (!cluster) return report_error(cluster.error());
  if (const Status filled = fill_steps(options, *cluster, *scenario); !filled)
    return report_error(filled.error());
  const auto begin = std::chrono::steady_clock::now();
  const SimulatedNetwork network(std::move(*cluster));
  auto messages = MessageFile::open(options.messages);
  if (!messages) return report_error(messages.error());
  const auto outcome = simulate_with_progress(options, *scenario, network, *messages);
  if (!outcome) return report_error(outcome.error());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!outcome->stopped_at) {
    OutputFiles outputs;
    outputs.add({"--html", options.html},
                [&] { return report::simulation_html(*scenario, network, *outcome); });
    if (const Status written = outputs.write(); !written) return report_error(written.error());
    if (const Status written = messages->publish(); !written) return report_error(written.error());
  }
  print_result(options, *scenario, network, *outcome, took.count());
  if (!outcome->stopped_at) return 0;
  return report_error({Code::kUnavailable, "stopped on request; no file was written"});
}

}  // namespace

void add_fabric_simulate(CLI::App& fabric, int& exit_status) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = add_command(
      fabric, "simulate", "Simulate the traffic of a scenario over the network of a cluster",
      "regatta fabric simulate examples/scenario.yaml --html fabric.html",
      [options, &exit_status] { exit_status = run_simulate(*options); });
  command->add_option("SCENARIO", options->scenario, "Scenario file (docs/formats/scenario.md)")
      ->required();
  command
      ->add_option("--cluster", options->cluster, "Cluster file, instead of that of the scenario")
      ->type_name("FILE")
      ->check(not_empty());
  command
      ->add_option(
          "--level", options->level,
          "flow (rates, fast), packet (queues and pauses) or mixed (packets where they matter)")
      ->type_name("LEVEL")
      ->check(one_of({"flow", "packet", "mixed"}));
  command
      ->add_option("--html", options->html,
                   "Write a page: items, load of links over time, queues of packets")
      ->type_name("FILE")
      ->check(not_empty());
  command
      ->add_option("--messages", options->messages,
                   "Write a CSV line for each message, as it is sent (packet level: arrives)")
      ->type_name("FILE")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print JSON");
}

}  // namespace regatta::cli
