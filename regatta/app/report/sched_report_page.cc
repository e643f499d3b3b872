#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/internal/replay_figures.h"
#include "regatta/app/report/sched_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

constexpr double kDay = 86400;
// A colour for each policy; further ones take them again.
constexpr std::array<const char*, 4> kStyles = {"measured", "predicted", "measured receives",
                                                "predicted receives"};

using CurveValue = std::function<double(const cluster_replay::CurvePoint&)>;

struct CurveSection {
  std::string_view heading;
  std::string_view hint;
  std::string axis;
  CurveValue value;
};

const char* style_of(std::size_t policy) {
  return kStyles[policy % kStyles.size()];
}

double last_day(const ReplayReport& report) {
  double last = 1;
  for (const PolicyReplay& replay : report.replays)
    if (!replay.result.curves.empty())
      last = std::max(last, replay.result.curves.back().from.value / kDay);
  return last;
}

std::string curve_section(const ReplayReport& report, const CurveSection& curve) {
  double most = 0;
  for (const PolicyReplay& replay : report.replays)
    for (const cluster_replay::CurvePoint& point : replay.result.curves)
      most = std::max(most, curve.value(point));
  if (most <= 0) return "";
  const double days = last_day(report);
  Chart chart({.title = curve.axis,
               .x_label = "days",
               .x_most = days,
               .ends_at_x_most = true,
               .y_most = most,
               .x_decimals = tick_decimals(days),
               .y_decimals = tick_decimals(most),
               .height = 220});
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < report.replays.size(); ++i) {
    Chart::Points points;
    for (const cluster_replay::CurvePoint& point : report.replays[i].result.curves)
      points.emplace_back(point.from.value / kDay, curve.value(point));
    chart.line(points, style_of(i));
    entries.emplace_back(style_of(i), report.replays[i].policy);
  }
  return section(curve.heading, curve.hint, legend(entries) + chart.html());
}

std::string policy_table(const ReplayReport& report) {
  const auto rows = replay_rows(report);
  std::vector<Column> columns;
  for (std::size_t i = 0; i < rows[0].size(); ++i)
    columns.push_back({rows[0][i], i > 0});
  std::vector<TableRow> cells;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    TableRow row;
    for (const std::string& cell : rows[i])
      row.cells.push_back(escape_html(cell));
    cells.push_back(std::move(row));
  }
  return html_table(columns, cells);
}

// Mean waiting of jobs by their number of devices.
std::string size_table(const ReplayReport& report) {
  std::vector<Column> columns = {{"devices, up to", true}, {"jobs", true}};
  for (const PolicyReplay& replay : report.replays)
    columns.push_back({replay.policy, true});
  std::vector<TableRow> rows;
  for (const auto& [devices, group] : report.replays[0].result.by_devices) {
    TableRow row{.cells = {std::to_string(devices), std::to_string(group.pending.jobs)},
                 .style = ""};
    for (const PolicyReplay& replay : report.replays) {
      const auto found = replay.result.by_devices.find(devices);
      row.cells.push_back(found == replay.result.by_devices.end()
                              ? ""
                              : format_duration(found->second.pending.mean));
    }
    rows.push_back(std::move(row));
  }
  return html_table(columns, rows);
}

std::string tiles(const ReplayReport& report) {
  const PolicyReplay& first = report.replays.front();
  return tile_row(
      tile("Mean waiting", format_duration(first.result.all.pending.mean),
           escape_html(first.policy)) +
      tile("Allocated", format_percent(first.result.allocated_share), "of all devices") +
      tile("Used", format_percent(first.result.used_share), "compute at work, of all devices") +
      tile("Evictions", std::to_string(first.result.evictions),
           format_percent(1 - effective_share(first.result)) + " of the work was done again"));
}

}  // namespace

std::string replay_html(const ReplayReport& report) {
  std::string body = tiles(report);
  body += section("Policies", replay_sentence(report), policy_table(report));
  const std::vector<CurveSection> curves = {
      {"Allocation", "Devices that jobs have, of all", "%",
       [](const auto& point) { return 100 * point.allocated_share; }},
      {"Utilisation", "Compute at work, of all devices", "%",
       [](const auto& point) { return 100 * point.used_share; }},
      {"Services", "Compute at work for services, of all devices", "%",
       [](const auto& point) { return 100 * point.online_share; }},
      {"Missed intervals of services", "In the time between two points", "intervals",
       [](const auto& point) { return point.missed; }},
      {"Busy", "Devices whose jobs work: neither restarting nor degraded", "%",
       [](const auto& point) { return 100 * point.busy_share; }},
      {"Fragmentation", "Free devices that the mean job cannot use", "%",
       [](const auto& point) { return 100 * point.fragmentation; }},
      {"Waiting jobs", "", "jobs", [](const auto& point) { return point.waiting_jobs; }},
      {"Devices that waiting jobs ask for", "", "devices",
       [](const auto& point) { return point.waiting_devices; }},
      {"Evictions", "In the time between two points", "evictions",
       [](const auto& point) { return point.evictions; }}};
  for (const CurveSection& curve : curves)
    body += curve_section(report, curve);
  body += section("Mean waiting by size", "", size_table(report));
  return html_page(
      {.kind = "scheduling",
       .title = report.load,
       .place = report.cluster,
       .facts = {pluralized(report.nodes, "node") + ", " + pluralized(report.devices, "device")},
       .origin = {"Simulated: no job ran."}},
      body);
}

}  // namespace regatta::report
