#include "bench/mixing/mixing_report.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/mixing/demand_forecast.h"
#include "regatta/platform/mixing/device_assignment.h"
#include "regatta/platform/mixing/duty_tables.h"
#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/mixing/mix_decision.h"

namespace regatta::mixing {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kSeed = 1;
constexpr double kHeldOutPairs = 0.3;
constexpr double kPastHours = 6;  // that static placements are decided on
constexpr double kFirstHour = 1;  // that elastic placements wait for
constexpr int kServiceDevices = 20;
constexpr int kReclaimMinutes = 5;

Result<ordered_json> report_interference(const std::vector<JobPair>& pairs) {
  ordered_json rows = ordered_json::array();
  for (const char* device : {"k80", "p100", "v100"}) {
    std::vector<JobPair> of_device;
    std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(of_device),
                 [&](const JobPair& pair) { return pair.device == device; });
    REGATTA_TRY(fit, fit_interference(of_device, kHeldOutPairs, kSeed));
    rows.push_back({{"device", device},
                    {"interference", fit.interference},
                    {"fitted_pairs", fit.fitted_pairs},
                    {"held_out_pairs", fit.held_out_pairs},
                    {"held_out_error", fit.held_out_error},
                    {"error_without_interference", fit.error_without},
                    {"error_of_mean", fit.error_constant}});
  }
  return rows;
}

ordered_json patterns_of(const DutyTrace& trace) {
  std::map<std::string, int> counts;
  for (const MixedWorkload& workload : trace.workloads)
    ++counts[name_of(find_duty_pattern(workload.demand, trace.interval))];
  return counts;
}

ordered_json placement_row(const std::string& name, double interference, const std::string& range,
                           const MixingUse& use) {
  return {{"placement", name},
          {"interference", interference},
          {"judged_on", range},
          {"pods_per_gpu", use.workloads_per_device()},
          {"above_capacity", use.above_share},
          {"missed", use.missed_share},
          {"delayed", use.delayed_share},
          {"most_gpus", use.most_devices},
          {"moves", use.moves}};
}

struct Ranges {
  IntervalRange past;   // for static placements
  IntervalRange later;  // to judge them
  IntervalRange all;
  IntervalRange elastic;
};

Ranges ranges_of(const DutyTrace& trace) {
  const std::size_t count = trace.workloads.front().demand.size();
  const auto interval_of = [&](double hours) {
    return std::min(count, static_cast<std::size_t>(hours * 3600 / trace.interval.value));
  };
  return {{0, interval_of(kPastHours)},
          {interval_of(kPastHours), count},
          {0, count},
          {interval_of(kFirstHour), count}};
}

Status add_static_rows(const DutyTrace& trace, const DeviceCapacity& device, ordered_json& rows) {
  const Ranges ranges = ranges_of(trace);
  const ServiceBudget budget;
  const double k = device.interference;
  const auto add = [&](const std::string& name, const std::vector<int>& homes, IntervalRange range,
                       const char* text) {
    rows.push_back(
        placement_row(name, k, text, judge_assignment(trace.workloads, homes, range, device)));
  };
  std::vector<int> own(trace.workloads.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    own[i] = static_cast<int>(i);
  add("a pod per GPU", own, ranges.later, "after 6 h");
  add("99th percentiles, of 6 h", assign_by_percentile(trace.workloads, ranges.past, 0.99, device),
      ranges.later, "after 6 h");
  add("99th percentiles, of all", assign_by_percentile(trace.workloads, ranges.all, 0.99, device),
      ranges.all, "all");
  REGATTA_TRY(held_out, assign_jointly(trace.workloads, ranges.past, device, budget, kSeed));
  add("joint series, of 6 h", held_out, ranges.later, "after 6 h");
  REGATTA_TRY(oracle, assign_jointly(trace.workloads, ranges.all, device, budget, kSeed));
  add("joint series, of all (oracle)", oracle, ranges.all, "all");
  return {};
}

Status add_elastic_rows(const DutyTrace& trace, const DeviceCapacity& device, ordered_json& rows) {
  const Ranges ranges = ranges_of(trace);
  for (const bool spikes_may_wait : {false, true}) {
    ElasticOptions options;
    options.spikes_may_wait = spikes_may_wait;
    const std::string name = spikes_may_wait ? "every 3, preemptive" : "every 3, shared";
    for (const bool is_late : {false, true}) {
      REGATTA_TRY(use, replay_elastic(trace.workloads, is_late ? ranges.later : ranges.elastic,
                                      options, device, {}));
      rows.push_back(
          placement_row(name, device.interference, is_late ? "after 6 h" : "after 1 h", use));
    }
  }
  return {};
}

// How much the figure depends on the order in which exchanges are tried, and on the time of a move.
Status add_other_seeds(const DutyTrace& trace, const DeviceCapacity& device, ordered_json& rows) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U})
    for (const int move_intervals : {0, 1}) {
      if (seed == kSeed && move_intervals == 1) continue;  // among the rows of elastic placements
      REGATTA_TRY(use,
                  replay_elastic(trace.workloads, ranges_of(trace).later,
                                 {.move_intervals = move_intervals, .seed = seed}, device, {}));
      rows.push_back(placement_row(fmt::format("every 3, shared, seed {}{}", seed,
                                               move_intervals == 0 ? ", moves at once" : ""),
                                   device.interference, "after 6 h", use));
    }
  return {};
}

// `weak` and `strong`: the interference of two more devices.
Result<ordered_json> report_placements(const DutyTrace& trace, const DeviceCapacity& device,
                                       double weak, double strong) {
  ordered_json rows = ordered_json::array();
  REGATTA_TRY_DO(add_static_rows(trace, device, rows));
  ElasticOptions oracle;
  oracle.has_hindsight = true;
  REGATTA_TRY(use, replay_elastic(trace.workloads, ranges_of(trace).later, oracle, device, {}));
  rows.push_back(placement_row("every 3, shared (oracle)", device.interference, "after 6 h", use));
  REGATTA_TRY_DO(add_other_seeds(trace, device, rows));
  for (const double k : {0.0, weak, device.interference, strong}) {
    DeviceCapacity other = device;
    other.interference = k;
    REGATTA_TRY_DO(add_elastic_rows(trace, other, rows));
  }
  return rows;
}

ordered_json limits_of(const DutyTrace& trace) {
  const Ranges ranges = ranges_of(trace);
  return {
      {"one_number_of_gpus", most_workloads_per_device(trace.workloads, ranges.all, 0.01, false)},
      {"a_number_for_each_interval",
       most_workloads_per_device(trace.workloads, ranges.all, 0.01, true)}};
}

// The `count` workloads of the pattern that exist longest.
std::vector<MixedWorkload> longest_of(const DutyTrace& trace, DutyPattern pattern,
                                      std::size_t count, Bytes memory) {
  std::vector<MixedWorkload> found;
  for (const MixedWorkload& workload : trace.workloads) {
    if (find_duty_pattern(workload.demand, trace.interval) != pattern) continue;
    found.push_back(workload);
    found.back().load_class = class_of_pattern(pattern);
    found.back().memory = memory;
  }
  const auto present = [](const MixedWorkload& workload) {
    return std::count_if(workload.demand.begin(), workload.demand.end(),
                         [](float demand) { return demand >= 0; });
  };
  std::stable_sort(found.begin(), found.end(), [&](const MixedWorkload& a, const MixedWorkload& b) {
    return present(a) > present(b);
  });
  found.resize(std::min(found.size(), count));
  return found;
}

Result<ordered_json> mode_row(const std::string& name, const std::vector<MixedWorkload>& workloads,
                              const DeviceCapacity& device, const ServiceBudget& budget) {
  REGATTA_TRY(decision, decide_mix(workloads, device, budget));
  return ordered_json{{"workloads", name},
                      {"interference", device.interference},
                      {"mode", name_of(decision.mode)},
                      {"within_budget", decision.is_within_budget},
                      {"daemon", join(daemon_flags(decision, device), " ")},
                      {"first", join(run_flags(decision.slices.front()), " ")},
                      {"last", join(run_flags(decision.slices.back()), " ")},
                      {"reason", decision.reason}};
}

// `strong`: the interference of a second device.
Result<ordered_json> report_modes(const DutyTrace& trace, DeviceCapacity device, double strong,
                                  Bytes memory) {
  const ServiceBudget budget{.interval = trace.interval};
  device.host_memory = Bytes{512LL << 30};
  const double weak = device.interference;
  const std::size_t intervals = trace.workloads.front().demand.size();
  const MixedWorkload training{"training", WorkloadClass::kBatch, memory,
                               std::vector<float>(intervals, 1)};
  ordered_json rows = ordered_json::array();
  const auto add = [&](const std::string& name,
                       const std::vector<MixedWorkload>& workloads) -> Status {
    REGATTA_TRY(row, mode_row(name, workloads, device, budget));
    rows.push_back(row);
    return {};
  };
  const auto services = longest_of(trace, DutyPattern::kPeakValley, 2, memory);
  std::vector<MixedWorkload> with_training = services;
  with_training.push_back(training);
  REGATTA_TRY_DO(add("two services", services));
  REGATTA_TRY_DO(add("two services and training", with_training));
  device.interference = strong;
  REGATTA_TRY_DO(add("two services and training", with_training));
  device.interference = weak;
  REGATTA_TRY_DO(add("three intermittent jobs of 60 GiB",
                     longest_of(trace, DutyPattern::kShortSpike, 3, Bytes{60LL << 30})));
  return rows;
}

Result<ordered_json> report_tidal(const std::vector<double>& requests) {
  ordered_json rows = ordered_json::array();
  const double highest = *std::max_element(requests.begin(), requests.end());
  for (const double quantile : {0.8, 0.95, 0.99}) {
    TidalOptions options;
    options.forecast.lead = kReclaimMinutes;
    options.forecast.quantile = quantile;
    options.devices = kServiceDevices;
    options.demand_per_device = highest / kServiceDevices;
    REGATTA_TRY(use, replay_tidal(requests, options, ServiceBudget{}.missed_share));
    rows.push_back({{"quantile", quantile},
                    {"lead_minutes", kReclaimMinutes},
                    {"missed", use.missed_share},
                    {"ramps", use.ramps},
                    {"missed_ramps", use.missed_ramps},
                    {"lent_device_hours", use.lent_share * use.intervals * kServiceDevices / 60},
                    {"lent_device_hours_of_oracle",
                     use.lent_share_of_oracle * use.intervals * kServiceDevices / 60},
                    {"reclaims", use.reclaims}});
  }
  return rows;
}

}  // namespace

Result<ordered_json> mixing_report(const ReportOptions& options) {
  const auto gentd = options.folder / "gentd";
  REGATTA_TRY(duty_text, bench_program::read_text(gentd / "gpu_duty_cycle.csv"));
  REGATTA_TRY(request_text, bench_program::read_text(gentd / "qps_1min.csv"));
  REGATTA_TRY(pair_text,
              bench_program::read_text(options.folder / "gavel" / "gavel_throughputs.csv"));
  REGATTA_TRY(trace, read_duty_trace(duty_text, "gpu_duty_cycle.csv"));
  REGATTA_TRY(requests, read_requests(request_text, "qps_1min.csv"));
  REGATTA_TRY(pairs, read_job_pairs(pair_text, "gavel_throughputs.csv"));
  for (MixedWorkload& workload : trace.workloads)
    workload.memory = options.memory;
  ordered_json report;
  REGATTA_TRY(interference, report_interference(pairs));
  report["interference"] = interference;
  report["patterns"] = patterns_of(trace);
  report["limits"] = limits_of(trace);
  DeviceCapacity device;
  device.interference = interference[0]["interference"];  // of the K80, the middle one
  const double weak = interference[1]["interference"];
  const double strong = interference[2]["interference"];
  REGATTA_TRY(placements, report_placements(trace, device, weak, strong));
  report["placements"] = placements;
  REGATTA_TRY(modes, report_modes(trace, device, strong, options.memory));
  report["modes"] = modes;
  REGATTA_TRY(tidal, report_tidal(requests));
  report["tidal"] = tidal;
  return report;
}

}  // namespace regatta::mixing
