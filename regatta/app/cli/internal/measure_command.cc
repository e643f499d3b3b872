#include "regatta/app/cli/internal/measure_command.h"

#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/report/measure_report.h"
#include "regatta/base/os/clock.h"
#include "regatta/model/cost/rates.h"
#include "regatta/runtime/agent/session.h"
#include "regatta/runtime/measure/measurement_schedule.h"
#include "regatta/runtime/measure/measurement_schedule_json.h"
#include "regatta/runtime/measure/summarize.h"

namespace regatta::cli {
namespace {

struct MeasureOptions {
  std::string cluster;
  std::string out;
  bool quick = false;
  bool json = false;
};

// How far the measurement is: one line that changes on a terminal, elsewhere a line every 5 s.
class MeasureProgress {
 public:
  MeasureProgress() : is_terminal_(::isatty(STDERR_FILENO) != 0), last_(os::monotonic_now()) {}
  ~MeasureProgress() {
    if (is_terminal_) std::fputs("\r\033[K", stderr);
  }
  MeasureProgress(const MeasureProgress&) = delete;
  MeasureProgress& operator=(const MeasureProgress&) = delete;

  // `done` of `total` samples of a phase: a path takes longer than a device, so each counts alone.
  void on_sample(const std::string& phase, std::size_t done, std::size_t total) {
    const Seconds now = os::monotonic_now();
    if (now - last_ < Seconds{is_terminal_ ? 0.1 : 5.0}) return;
    last_ = now;
    fmt::print(stderr, "{}measuring {}: {} %{}", is_terminal_ ? "\r\033[K" : "", phase,
               100 * done / total, is_terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

 private:
  bool is_terminal_;
  Seconds last_;
};

std::vector<agent::WorkerLaunch> launches_of(const topo::Cluster& cluster,
                                             const measure::MeasurementSchedule& schedule) {
  std::vector<agent::WorkerLaunch> launches;
  for (const topo::DeviceRef device : topo::all_devices(cluster)) {
    nlohmann::json spec = measure::to_json(schedule);
    spec["device_kind"] = "cpu";
    launches.push_back({.device = device,
                        .arguments = {"measure"},
                        .spec = std::make_shared<const nlohmann::json>(std::move(spec))});
  }
  return launches;
}

Status gather(agent::Session& session, const topo::Cluster& cluster,
              const measure::MeasurementSchedule& schedule, measure::Samples& samples) {
  const std::vector<agent::WorkerLaunch> launches = launches_of(cluster, schedule);
  const auto device_samples = static_cast<std::size_t>(
      measure::device_sample_count(schedule, static_cast<int>(launches.size())));
  MeasureProgress progress;
  const auto on_event = [&](Rank rank, const nlohmann::json& event) {
    const measure::Sample sample = measure::parse_event(rank, event);
    if (const auto* device = std::get_if<measure::DeviceSample>(&sample)) {
      samples.devices.push_back(*device);
      progress.on_sample("devices", samples.devices.size(), device_samples);
    } else if (const auto* share = std::get_if<measure::ShareSample>(&sample)) {
      samples.shares.push_back(*share);
    } else if (const auto* path = std::get_if<measure::PathSample>(&sample)) {
      samples.paths.push_back(*path);
      progress.on_sample("paths", samples.paths.size(), schedule.path_tasks.size());
    }
  };
  return session.run(launches, on_event, watch_stop_signals());
}

// CPU devices without a fixed share of a core measure differently from run to run.
bool has_shared_cores(const agent::Session& session) {
  return !session.lab() || !session.lab()->fixed_speed;
}

Result<cost::Rates> measure_cluster(const topo::Cluster& cluster, const MeasureOptions& options) {
  REGATTA_TRY_DO(topo::check_can_start(cluster));
  const measure::MeasurementSchedule schedule =
      measure::make_measurement_schedule(cluster, {.quick = options.quick});
  REGATTA_TRY(session, agent::Session::open(cluster, {}));
  measure::Samples samples;
  REGATTA_TRY_DO(gather(session, cluster, schedule, samples));
  REGATTA_TRY(rates, measure::summarize(cluster, schedule, samples));
  rates.source =
      fmt::format("measured {:%Y-%m-%d %H:%M} on {} devices{}, passes within {:.0f} %",
                  fmt::localtime(std::time(nullptr)), topo::all_devices(cluster).size(),
                  options.quick ? ", quickly" : "", 100 * measure::pass_variation(samples));
  rates.shared_cores = has_shared_cores(session);
  const cost::Rates described = cost::described_rates(cluster);
  for (auto& [name, device] : rates.devices)
    device.described = described.devices.at(name).described;
  return rates;
}

int run(const MeasureOptions& options) {
  const auto cluster = load_cluster(options.cluster);
  if (!cluster) return report_error(cluster.error());
  if (const Status runs = check_devices_run_here(*cluster, "measure"); !runs)
    return report_error(runs.error());
  const std::string path = options.out.empty() ? measured_path(options.cluster) : options.out;
  const OutputFile place{"--out", path};
  // Before the measurement, not after it, is the time to learn that it cannot be saved.
  if (const Status good = check_outputs({place}, {options.cluster}); !good)
    return report_error(good.error());
  const auto rates = measure_cluster(*cluster, options);
  if (!rates) return report_error(rates.error());
  const std::string text = cost::rates_to_json(*rates);
  OutputFiles outputs;
  outputs.add(place, [&] { return text; });
  if (const Status saved = outputs.write(); !saved) return report_error(saved.error());
  if (options.json) {
    std::fputs(text.c_str(), stdout);
  } else {
    fmt::print("{}\nsaved: {}\n", report::rates_text(cluster->name, *rates), path);
  }
  return 0;
}

}  // namespace

void add_measure_command(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand(
      "measure", "Measure the devices and paths of a cluster, for better predictions");
  command->footer(
      "Example:\n"
      "  regatta measure examples/cluster.yaml\n"
      "saves examples/cluster.measured.json; `regatta plan` and `regatta run` use it.");
  auto options = std::make_shared<MeasureOptions>();
  command->add_option("CLUSTER", options->cluster, "Cluster file")->required()->check(not_empty());
  command
      ->add_option("--out", options->out, "File of the rates, instead of beside the cluster file")
      ->type_name("FILE")
      ->check(not_empty());
  command->add_flag("--quick", options->quick,
                    "Measure few shapes, and one pair of devices for each path");
  command->add_flag("--json", options->json, "Print the saved rates as JSON");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace regatta::cli
