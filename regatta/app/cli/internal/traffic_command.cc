#include "regatta/app/cli/internal/traffic_command.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/find_lab.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/lab_polarisation.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/app/cli/internal/traffic_recorder.h"
#include "regatta/app/report/network_report.h"
#include "regatta/app/report/pages.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/network/diag/traffic_analysis.h"

namespace regatta::cli {
namespace {

constexpr TimeRange kPeriods{{0.001}, {1}, "10ms"};
constexpr Seconds kDurationMost{600.0};
constexpr double kPeriodsLeast = 10;

struct TrafficOptions {
  std::string lab;
  std::string duration = "10s";
  std::string period = "10ms";
  std::string html;
  bool json = false;
};

Result<Seconds> period_of(const TrafficOptions& options) {
  return time_flag("--period", options.period, kPeriods, "ms");
}

Result<Seconds> duration_of(const TrafficOptions& options, Seconds period) {
  REGATTA_TRY(duration, time_flag("--duration", options.duration));
  const Seconds least = period * kPeriodsLeast;
  if (duration < least || duration > kDurationMost)
    return Error{
        Code::kInvalidInput,
        fmt::format("--duration: '{}' is not from {}, ten times --period, to {}; give one "
                    "like 10s",
                    options.duration, format_duration(least), format_duration(kDurationMost))};
  return duration;
}

std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<diag::TrafficAnalysis> watch(const std::optional<lab::LabInfo>& lab, Seconds duration,
                                    Seconds period, bool as_json) {
  const std::atomic<bool>& stop = watch_stop_signals();
  REGATTA_TRY(watch, TrafficRecorder::open(lab, period));
  const Seconds begin = os::monotonic_now();
  Seconds reported;
  for (Seconds next = begin + Seconds{1.0}; !stop;) {
    const Seconds now = os::monotonic_now();
    if (now >= begin + duration) break;
    os::sleep_for(std::min({Seconds{0.1}, next - now, begin + duration - now}));
    if (os::monotonic_now() < next) continue;
    next += Seconds{1.0};
    watch->sample_ranks();
    if (!as_json) continue;
    const diag::TrafficRecord record = watch->record();
    print_now(json_text(report::traffic_interval_json(record, reported)));
    reported = record.interval * static_cast<double>(record.intervals);
  }
  REGATTA_TRY_DO(watch->stop());
  diag::TrafficRecord record = watch->record();
  // Ranks report operations that were under way at the end when they end.
  os::sleep_for(Seconds{0.2});
  watch->sample_ranks();
  record.ranks = watch->record().ranks;
  return diag::analyze_traffic(record);
}

Status run(const TrafficOptions& options) {
  REGATTA_TRY(period, period_of(options));
  REGATTA_TRY(duration, duration_of(options, period));
  const OutputFile html{"--html", options.html};
  REGATTA_TRY_DO(check_outputs({html}));
  std::optional<lab::LabInfo> lab;
  if (!options.lab.empty()) {
    REGATTA_TRY(found, find_lab(options.lab));
    lab = std::move(found);
  }
  std::vector<std::uint64_t> before;
  if (lab) {
    REGATTA_TRY(bytes, bytes_of_cables(*lab));
    before = std::move(bytes);
  }
  REGATTA_TRY(view, watch(lab, duration, period, options.json));
  if (lab) {
    REGATTA_TRY(found, find_polarisation(*lab, before));
    view.polarisation = std::move(found);
  }
  if (options.json)
    print_now(json_text(report::traffic_json(view)));
  else
    print_now(report::traffic_text(view));
  OutputFiles outputs;
  outputs.add(
      html, [&] { return report::traffic_html(view, lab ? "lab " + lab->name : "this machine"); });
  return outputs.write();
}

}  // namespace

void add_traffic_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<TrafficOptions>();
  CLI::App* traffic = add_command(
      app, "traffic", "Show the traffic of the network by job, collective and step",
      "regatta traffic --lab lab-4x2 --duration 10s --html traffic.html", [=, &exit_status] {
        const Status status = run(*options);
        exit_status = status ? 0 : report_error(status.error());
      });
  traffic
      ->add_option("--lab", options->lab,
                   "Name of a lab that is up: all its servers; this machine when left out")
      ->type_name("LAB")
      ->check(not_empty());
  traffic->add_option("--duration", options->duration, "Duration, up to 10min (10s)")
      ->type_name("TIME");
  traffic
      ->add_option("--period", options->period, "Time between two samples, from 1ms to 1s (10ms)")
      ->type_name("TIME");
  traffic->add_flag("--json", options->json,
                    "Print a JSON object per second, and the whole analysis as the last one");
  traffic->add_option("--html", options->html, "Write a page with the rates over time")
      ->type_name("FILE")
      ->check(not_empty());
}

}  // namespace regatta::cli
