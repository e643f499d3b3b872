// `regatta fabric watch`: reports ports that pauses block permanently, from the counters of this
// machine's NICs or of switches.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/fabric_command.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/app/report/fabric_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/socket.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/port_pfc_watchdog.h"

namespace regatta::cli {
namespace {

using fabric::PfcPortCounters;
using fabric::PortStormAlarm;
using nlohmann::json;
using report::WatchedDeviceChange;

constexpr std::size_t kLongestLine = 4096;

struct WatchOptions {
  std::string cluster;
  std::vector<std::string> devices;
  std::string counters;
  std::string period = "100ms";
  std::string storm_after = "200ms";
  std::string duration;
  bool json = false;
};

// Prints alarms, and devices that cannot be read, as they come.
class AlarmReporter {
 public:
  AlarmReporter(const topo::Graph* graph, bool is_json) : graph_(graph), is_json_(is_json) {}

  void report(const PortStormAlarm& alarm) {
    storms_ += alarm.alarm.is_storm ? 1 : 0;
    print(is_json_ ? to_line(report::storm_alarm_json(graph_, alarm))
                   : report::storm_alarm_text(graph_, alarm));
  }

  void report_device(const WatchedDeviceChange& change) const {
    print(is_json_ ? to_line(report::watched_device_json(change))
                   : report::watched_device_text(change));
  }

  std::size_t storms() const { return storms_; }

 private:
  static std::string to_line(const json& one) {
    return one.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  }

  static void print(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  const topo::Graph* graph_;
  const bool is_json_;
  std::size_t storms_ = 0;
};

Status add(fabric::PortPfcWatchdog& watch, const PfcPortCounters& port, AlarmReporter& reporter) {
  REGATTA_TRY(alarms, watch.add(port));
  for (const PortStormAlarm& alarm : alarms)
    reporter.report(alarm);
  return {};
}

// Adds the counters of a line; fails with kInvalidInput where the line is wrong.
Status add_line(const std::string& line, const std::string& file, int number,
                fabric::PortPfcWatchdog& watch, AlarmReporter& reporter) {
  const auto wrong = [&](const std::string& what) {
    return Error{Code::kInvalidInput, fmt::format("{}:{}: {}", file, number, what)};
  };
  if (line.size() > kLongestLine)
    return wrong(fmt::format("the line is longer than {} letters", kLongestLine));
  std::string_view text = line;
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (number == 1) {
    if (text == fabric::kPfcPortCountersHeading) return {};
    return wrong(
        fmt::format("the first line must be the heading {}", fabric::kPfcPortCountersHeading));
  }
  if (text.empty() || text.starts_with('#')) return {};
  REGATTA_TRY(port, fabric::parse_pfc_port_counters(text, file, number));
  if (const Status added = add(watch, port, reporter); !added) return wrong(added.error().message);
  return {};
}

Status watch_lines(os::LineReader& lines, const std::string& file, fabric::PortPfcWatchdog& watch,
                   AlarmReporter& reporter) {
  const std::atomic<bool>& stop = watch_stop_signals();
  for (int number = 1;; ++number) {
    REGATTA_TRY(line, lines.next(stop));
    if (!line) break;
    REGATTA_TRY_DO(add_line(*line, file, number, watch, reporter));
  }
  if (watch.ports() == 0 && !stop)
    return Error{Code::kInvalidInput,
                 file + ": no counters are in it; write the heading and a line for each reading"};
  return {};
}

Status watch_file(const std::string& path, fabric::PortPfcWatchdog& watch,
                  AlarmReporter& reporter) {
  if (path == "-") {
    os::LineReader lines(os::UniqueFd(STDIN_FILENO), "standard input", kLongestLine);
    return watch_lines(lines, "standard input", watch, reporter);
  }
  auto lines = os::LineReader::open(path, kLongestLine);
  if (!lines)
    return Error{Code::kInvalidInput, lines.error().message + "; name a file of counters"};
  return watch_lines(*lines, path, watch, reporter);
}

Result<std::vector<PfcPortCounters>> read_device(const std::string& device) {
  REGATTA_TRY(counters, os::ethtool_counters(device));
  std::vector<fabric::NamedCount> named;
  for (auto& [name, count] : counters)
    named.push_back({std::move(name), count});
  std::vector<PfcPortCounters> ports = fabric::pfc_port_counters(named);
  const Seconds now = os::monotonic_now();
  for (PfcPortCounters& port : ports) {
    port.at = now;
    port.port = device;
    port.is_up = os::has_carrier(device);
  }
  return ports;
}

// The named devices, each of which must count pauses, or all devices that do.
Result<std::vector<std::string>> devices_to_watch(const WatchOptions& options) {
  std::vector<std::string> names = options.devices;
  if (names.empty()) {
    REGATTA_TRY(all, os::network_devices());
    names = std::move(all);
  }
  std::vector<std::string> devices;
  for (const std::string& name : names) {
    const auto ports = read_device(name);
    if (ports && !ports->empty()) {
      devices.push_back(name);
      continue;
    }
    if (options.devices.empty()) continue;
    if (!ports)
      return Error{Code::kInvalidInput,
                   printable(ports.error().message, 200) + (ports.error().code == Code::kNotFound
                                                                ? "; see ip link for their names"
                                                                : "; leave it out")};
    return Error{
        Code::kInvalidInput,
        fmt::format("{}: its driver counts no pauses; name NICs whose driver does (mlx5, "
                    "bnxt, ice, i40e) with --device, or give the counters of switches with "
                    "--counters",
                    name)};
  }
  if (!devices.empty()) return devices;
  return Error{
      Code::kInvalidInput,
      fmt::format("no device of this machine ({}) counts pauses; watch where NICs of mlx5, bnxt, "
                  "ice or i40e are, or give the counters of switches with --counters",
                  names.empty() ? "it has none" : printable(join(names, ", "), 120))};
}

// Reports a device that cannot be read once; the others stay watched.
Status watch_device(const std::string& device, Seconds begin, fabric::PortPfcWatchdog& watch,
                    AlarmReporter& reporter) {
  const auto ports = read_device(device);
  const Seconds now = os::monotonic_now() - begin;
  if (!ports || ports->empty()) {
    const std::string why =
        ports ? device + ": its driver counts no pauses any more" : ports.error().message;
    if (watch.lose("", device))
      reporter.report_device({.device = device, .reason = why, .at = now});
    return {};
  }
  if (watch.regain("", device)) reporter.report_device({.device = device, .reason = "", .at = now});
  for (PfcPortCounters port : *ports) {
    port.at = port.at - begin;
    REGATTA_TRY_DO(add(watch, port, reporter));
  }
  return {};
}

Status watch_devices(const WatchOptions& options, Seconds period, std::optional<Seconds> duration,
                     fabric::PortPfcWatchdog& watch, AlarmReporter& reporter) {
  REGATTA_TRY(devices, devices_to_watch(options));
  const std::atomic<bool>& stop = watch_stop_signals();
  const Seconds begin = os::monotonic_now();
  for (Seconds next = begin; !stop && (!duration || next <= begin + *duration); next += period) {
    os::sleep_for(next - os::monotonic_now());
    for (const std::string& device : devices)
      REGATTA_TRY_DO(watch_device(device, begin, watch, reporter));
  }
  return {};
}

Result<std::optional<Seconds>> duration_of(const WatchOptions& options) {
  if (options.duration.empty()) return std::optional<Seconds>();
  REGATTA_TRY(duration, time_flag("--duration", options.duration));
  if (duration.value <= 0)
    return Error{Code::kInvalidInput, "--duration: must be above 0, like 10s"};
  return std::optional<Seconds>(duration);
}

Result<std::size_t> run(const WatchOptions& options) {
  REGATTA_TRY(period, time_flag("--period", options.period, "ms"));
  if (period.value < 1e-3 || period.value > 10)
    return Error{Code::kInvalidInput, "--period: must be from 1ms to 10s, like 100ms"};
  REGATTA_TRY(storm_after, time_flag("--storm-after", options.storm_after, "ms"));
  // Lines of a file have no period.
  const Seconds least = options.counters.empty() ? period : Seconds{1e-3};
  if (storm_after < least || storm_after.value > 100)
    return Error{
        Code::kInvalidInput,
        fmt::format("--storm-after: must be from {} to 100s, like {:g}s",
                    options.counters.empty() ? "--period" : "1ms", std::max(0.2, 2 * least.value))};
  REGATTA_TRY(duration, duration_of(options));
  std::optional<topo::Graph> graph;
  if (!options.cluster.empty()) {
    REGATTA_TRY(cluster, load_cluster(options.cluster));
    graph = topo::build_graph(cluster);
  }
  fabric::PortPfcWatchdog watch({.detection = storm_after}, graph ? &*graph : nullptr);
  AlarmReporter reporter(graph ? &*graph : nullptr, options.json);
  if (options.counters.empty())
    REGATTA_TRY_DO(watch_devices(options, period, duration, watch, reporter));
  else
    REGATTA_TRY_DO(watch_file(options.counters, watch, reporter));
  const report::StormWatchSummary summary{watch.ports(), watch.queues(), reporter.storms()};
  fmt::print("{}", options.json ? report::storm_watch_json(summary).dump() + "\n"
                                : report::storm_watch_text(summary));
  return reporter.storms();
}

int watch_command(const WatchOptions& options) {
  const auto storms = run(options);
  if (!storms) return report_error(storms.error());
  return *storms == 0 ? 0 : 1;
}

}  // namespace

void add_fabric_watch(CLI::App& fabric, int& exit_status) {
  const auto options = std::make_shared<WatchOptions>();
  CLI::App* command =
      add_command(fabric, "watch", "Watch the pause counters of NICs or switches for pause storms",
                  "regatta fabric watch --device eth0 --duration 60s",
                  [options, &exit_status] { exit_status = watch_command(*options); });
  auto* cluster =
      command
          ->add_option("CLUSTER", options->cluster,
                       "Cluster file of the switches in --counters: locates where storms begin")
          ->check(not_empty());
  auto* devices =
      command
          ->add_option("--device", options->devices,
                       "NIC of this machine, repeatable; all that count pauses when left out")
          ->type_name("NAME")
          ->allow_extra_args(false)
          ->check(not_empty());
  auto* period = command->add_option("--period", options->period, "Time between two readings")
                     ->type_name("TIME")
                     ->capture_default_str();
  command
      ->add_option("--storm-after", options->storm_after,
                   "How long a port is paused before it counts as a storm")
      ->type_name("TIME")
      ->capture_default_str();
  auto* duration =
      command->add_option("--duration", options->duration, "Duration; until Ctrl-C when left out")
          ->type_name("TIME")
          ->check(not_empty());
  auto* counters =
      command
          ->add_option("--counters", options->counters,
                       "Counters of switches (docs/formats/pauses.md); - is standard input")
          ->type_name("FILE")
          ->check(not_empty())
          ->excludes(devices)
          ->excludes(period)
          ->excludes(duration);
  cluster->needs(counters);
  command->add_flag("--json", options->json, "Print a JSON object per event");
}

}  // namespace regatta::cli
