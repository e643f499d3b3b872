#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/replay_figures.h"
#include "regatta/app/report/sched_report.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

constexpr double kHour = 3600;

nlohmann::json waiting_json(const cluster_replay::WaitingSummary& waiting) {
  return {{"jobs", waiting.jobs},
          {"mean_s", waiting.mean.value},
          {"median_s", waiting.median.value},
          {"p90_s", waiting.percentile_90.value},
          {"p99_s", waiting.percentile_99.value},
          {"longest_s", waiting.longest.value}};
}

nlohmann::json group_json(const cluster_replay::JobGroupSummary& group) {
  return {{"pending", waiting_json(group.pending)},
          {"delay", waiting_json(group.delay)},
          {"first_wait", waiting_json(group.first_wait)},
          {"evictions", group.evictions}};
}

nlohmann::json groups_json(const std::map<int, cluster_replay::JobGroupSummary>& groups) {
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [key, group] : groups)
    result[std::to_string(key)] = group_json(group);
  return result;
}

nlohmann::json classes_json(
    const std::map<sched::JobClass, cluster_replay::JobGroupSummary>& groups) {
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [job_class, group] : groups)
    result[mixing::name_of(job_class)] = group_json(group);
  return result;
}

nlohmann::json missed_json(const cluster_replay::MissedIntervals& missed) {
  return {{"all", missed.all()},
          {"away", missed.away},
          {"replicas", missed.replicas},
          {"devices", missed.devices}};
}

// Services that missed an interval.
nlohmann::json services_json(const PolicyReplay& replay) {
  nlohmann::json list = nlohmann::json::array();
  for (const cluster_replay::JobOutcome& job : replay.result.jobs) {
    if (job.missed.all() == 0) continue;
    list.push_back(
        {{"job", job.name}, {"intervals", job.intervals}, {"missed", missed_json(job.missed)}});
  }
  return list;
}

nlohmann::json curves_json(const std::vector<cluster_replay::CurvePoint>& curves) {
  nlohmann::json list = nlohmann::json::array();
  for (const cluster_replay::CurvePoint& point : curves)
    list.push_back({{"from_s", point.from.value},
                    {"allocated_share", point.allocated_share},
                    {"busy_share", point.busy_share},
                    {"used_share", point.used_share},
                    {"online_share", point.online_share},
                    {"fragmentation", point.fragmentation},
                    {"waiting_jobs", point.waiting_jobs},
                    {"waiting_devices", point.waiting_devices},
                    {"evictions", point.evictions},
                    {"missed", point.missed}});
  return list;
}

nlohmann::json costs_json(const cluster_replay::FailureCosts& costs) {
  return {{"failures", costs.failures},
          {"restarts", costs.restarts},
          {"held_device_s", costs.held.value},
          {"undone_device_s", costs.undone.value},
          {"restarting_device_s", costs.restarting.value},
          {"degraded_device_s", costs.degraded.value},
          {"saving_device_s", costs.saving.value},
          {"requeued_device_s", costs.requeued.value}};
}

// The costs of failures under one policy; "" where no node failed.
std::string failures_sentence(const PolicyReplay& replay) {
  const cluster_replay::FailureCosts& costs = replay.result.failure_costs;
  if (costs.failures == 0) return "";
  const Seconds all = costs.held + costs.requeued;
  const auto share = [&](Seconds part) { return format_percent(all.value > 0 ? part / all : 0); };
  return fmt::format(
      "{}: {} of nodes, {}; {} of the jobs' device time is work that counts, {} was undone, {} "
      "restarts, {} lacks a node, {} saves checkpoints, {} waits after an eviction\n",
      replay.policy, pluralized(as_index(costs.failures), "failure"),
      pluralized(as_index(costs.restarts), "restart"), format_percent(costs.ettr()),
      share(costs.undone), share(costs.restarting), share(costs.degraded), share(costs.saving),
      share(costs.requeued));
}

nlohmann::json result_json(const ReplayReport& report, const PolicyReplay& replay) {
  const cluster_replay::ReplayResult& result = replay.result;
  const double effective = effective_share(result);
  nlohmann::json made = {{"policy", replay.policy},
                         {"all", group_json(result.all)},
                         {"by_devices", groups_json(result.by_devices)},
                         {"by_priority", groups_json(result.by_priority)},
                         {"by_class", classes_json(result.by_class)},
                         {"unfinished", result.unfinished},
                         {"allocated_share", result.allocated_share},
                         {"busy_share", result.busy_share},
                         {"used_share", result.used_share},
                         {"online_share", result.online_share},
                         {"service_intervals", result.service_intervals},
                         {"missed", missed_json(result.missed)},
                         {"services", services_json(replay)},
                         {"delayed_share", result.delayed_share},
                         {"mixes", result.mixes},
                         {"fragmentation", result.fragmentation},
                         {"waiting_jobs", result.waiting_jobs},
                         {"evictions", result.evictions},
                         {"moves", result.moves},
                         {"resizes", result.resizes},
                         {"lost_device_s", result.lost_device_time.value},
                         {"work_device_s", result.work_device_time.value},
                         {"effective_share", effective},
                         {"ettr", result.failure_costs.ettr()},
                         {"failure_costs", costs_json(result.failure_costs)},
                         {"last_end_s", result.last_end.value},
                         {"decisions", result.decision_times.decisions},
                         {"log_events", result.logged_events},
                         {"log_hash", fmt::format("{:016x}", result.log_hash)},
                         {"curves", curves_json(result.curves)}};
  if (report.price > 0) made["lost_money"] = result.lost_device_time.value / kHour * report.price;
  return made;
}

}  // namespace

double effective_share(const cluster_replay::ReplayResult& result) {
  const double work = result.work_device_time.value;
  const double all = work + result.lost_device_time.value;
  return all > 0 ? work / all : 1;
}

std::vector<std::vector<std::string>> replay_rows(const ReplayReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"policy", "jobs", "unfinished", "wait mean", "median", "90 %", "allocated", "busy", "used",
       "fragmented", "evictions", "lost device h", "effective"}};
  if (report.price > 0) rows[0].emplace_back("lost money");
  const bool has_services = report.replays.front().result.service_intervals > 0;
  if (has_services) rows[0].emplace_back("missed");
  for (const PolicyReplay& replay : report.replays) {
    const cluster_replay::ReplayResult& result = replay.result;
    const double lost = result.lost_device_time.value / kHour;
    rows.push_back(
        {replay.policy, std::to_string(result.all.pending.jobs), std::to_string(result.unfinished),
         format_duration(result.all.pending.mean), format_duration(result.all.pending.median),
         format_duration(result.all.pending.percentile_90), format_percent(result.allocated_share),
         format_percent(result.busy_share), format_percent(result.used_share),
         format_percent(result.fragmentation), std::to_string(result.evictions),
         fmt::format("{:.1f}", lost), format_percent(effective_share(result))});
    if (report.price > 0) rows.back().push_back(fmt::format("{:.0f}", lost * report.price));
    if (has_services)
      rows.back().push_back(fmt::format("{} of {}", result.missed.all(), result.service_intervals));
  }
  return rows;
}

std::string replay_sentence(const ReplayReport& report) {
  if (report.replays.size() < 2) return "";
  const PolicyReplay& first = report.replays.front();
  const PolicyReplay& last = report.replays.back();
  const Seconds before = last.result.all.pending.mean;
  if (before.value <= 0) return "";
  return fmt::format("jobs wait {:.2f} times as long under {} as under {}",
                     first.result.all.pending.mean / before, first.policy, last.policy);
}

std::string replay_text(const ReplayReport& report) {
  std::string text =
      fmt::format("{} on {}: {}, {}\n", report.load, report.cluster,
                  pluralized(report.nodes, "node"), pluralized(report.devices, "device"));
  text += format_table(replay_rows(report));
  const std::string sentence = replay_sentence(report);
  if (!sentence.empty()) text += sentence + "\n";
  for (const PolicyReplay& replay : report.replays)
    text += failures_sentence(replay);
  return text;
}

nlohmann::json replay_json(const ReplayReport& report) {
  nlohmann::json replays = nlohmann::json::array();
  for (const PolicyReplay& replay : report.replays)
    replays.push_back(result_json(report, replay));
  return {{"load", report.load},
          {"cluster", report.cluster},
          {"nodes", report.nodes},
          {"devices", report.devices},
          {"replays", std::move(replays)}};
}

}  // namespace regatta::report
