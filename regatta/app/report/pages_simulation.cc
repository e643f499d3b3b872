#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/internal/simulation_link_charts.h"
#include "regatta/app/report/pages.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/network/diag/polarisation.h"
#include "regatta/network/simulate/storm_cause.h"

namespace regatta::report {
namespace {

using simulate::Failure;
using simulate::LinkStats;
using simulate::OperationStats;
using simulate::Scenario;
using simulate::SimulatedNetwork;
using simulate::SimulationResult;
using simulate::SlowMessage;

std::string tiles(const SimulationResult& outcome) {
  double busiest = 0;
  for (const LinkStats& link : outcome.links)
    busiest = std::max(busiest, link.mean);
  const bool has_ended = outcome.unfinished == 0;
  std::string html =
      tile(has_ended ? "Finished after" : "Last arrival after",
           TimeFormat({outcome.end})({outcome.end}), has_ended ? "all messages have arrived" : "");
  html += tile("Messages", count_text(static_cast<long long>(outcome.messages)),
               has_ended ? "all arrive"
                         : fmt::format("{} never {}", pluralized(outcome.unfinished, "flow"),
                                       outcome.unfinished == 1 ? "ends" : "end"),
               has_ended ? "" : "bad");
  html += tile("Busiest link", format_percent(busiest), "mean load over the run");
  if (outcome.ports.most > 0)
    html += tile(
        "Flows on one link", std::to_string(outcome.ports.most),
        fmt::format("at most, with planned ports; {} by chance", outcome.ports.most_by_chance));
  return tile_row(html);
}

std::string operation_bar(const OperationStats& item, double end) {
  if (!(item.end <= end) || end <= 0) return "";
  return fmt::format(
      "<div class=\"track\" style=\"min-width:180px\"><div class=\"stack\"><i class=\"before\" "
      "style=\"width:{:.3f}%\"></i><i class=\"measured\" style=\"width:{:.3f}%\"></i></div></div>",
      100 * item.start / end, 100 * std::max(item.time() / end, 0.002));
}

std::string operations(const SimulationResult& outcome) {
  const TimeFormat format({outcome.end});
  double fastest = 0;
  for (const OperationStats& item : outcome.operations)
    fastest = std::max({fastest, item.algbw, item.busbw});
  const ColumnFormat rate = ColumnFormat::bytes_per_second({fastest});
  std::vector<TableRow> rows;
  for (const OperationStats& item : outcome.operations) {
    const bool ends = std::isfinite(item.end);
    rows.push_back(
        {.cells = {escape_html(item.name), operation_bar(item, outcome.end),
                   std::isfinite(item.start) ? format({item.start}) : "never",
                   ends ? format({item.time()}) : "never ends",
                   ends && item.time() > 0 ? format_percent(item.bound / item.time()) : "-",
                   item.algbw > 0 ? rate(item.algbw) : "-", item.busbw > 0 ? rate(item.busbw) : "-",
                   count_text(static_cast<long long>(item.messages))},
         .style = ""});
  }
  return section("Traffic items",
                 "100 % of the NIC bound: the busiest NIC never waits. algbw and busbw as "
                 "nccl-tests defines them.",
                 html_table({{"Item", false},
                             {"When", false},
                             {"Start", true},
                             {"Time", true},
                             {"Of NIC bound", true},
                             {"algbw", true},
                             {"busbw", true},
                             {"Messages", true}},
                            rows));
}

std::string target_of(const Failure& failure) {
  if (!failure.pausing_nic.empty()) return "the NIC of " + failure.pausing_nic + " accepts nothing";
  if (!failure.switch_name.empty()) return "switch " + failure.switch_name + " fails";
  return "link " + failure.link + " fails";
}

std::string failures(const Scenario& scenario, double end) {
  if (scenario.failures.empty()) return "";
  const TimeFormat format({end});
  std::vector<TableRow> rows;
  for (std::size_t i = 0; i < scenario.failures.size(); ++i) {
    const Failure& failure = scenario.failures[i];
    rows.push_back(
        {.cells = {std::to_string(i + 1), escape_html(target_of(failure)),
                   format(failure.at) + (failure.at.value <= end ? "" : ", after the end"),
                   std::isfinite(failure.until.value) ? format(failure.until) : "never"},
         .style = ""});
  }
  return section(
      "Failures", "The charts mark each one by its number, shaded while it lasts.",
      html_table({{"#", false}, {"Failure", false}, {"At", true}, {"Back at", true}}, rows));
}

// Failures after the end changed nothing.
std::vector<ChartMark> marks_of(const Scenario& scenario, double end) {
  std::vector<ChartMark> marks;
  for (std::size_t i = 0; i < scenario.failures.size(); ++i) {
    const Failure& failure = scenario.failures[i];
    if (failure.at.value <= end)
      marks.push_back(
          {.from = failure.at.value, .to = failure.until.value, .number = std::to_string(i + 1)});
  }
  return marks;
}

std::string polarisation(const SimulatedNetwork& network, const SimulationResult& outcome) {
  std::string html;
  for (const diag::Polarisation& one : outcome.polarisation) {
    std::vector<std::string> names;
    for (const std::uint32_t link : one.empty)
      names.push_back(network.link_name(link));
    html += section("Hash polarisation",
                    "Links that carry nothing, although enough flows reach their switches.",
                    sentence(diag::to_string(network.graph, one)) + sentence(join(names, ", ")));
  }
  return html;
}

std::string slowest(const SimulatedNetwork& network, const SimulationResult& outcome) {
  if (outcome.slowest.empty()) return "";
  const TimeFormat start({outcome.end});
  Seconds longest;
  double largest = 0;
  for (const SlowMessage& one : outcome.slowest) {
    if (std::isfinite(one.arrived)) longest = std::max(longest, {one.arrived - one.start});
    largest = std::max(largest, one.bytes);
  }
  const TimeFormat time(longest);
  const ColumnFormat size = ColumnFormat::bytes(largest);
  std::vector<TableRow> rows;
  for (const SlowMessage& one : outcome.slowest) {
    const double took = one.arrived - one.start;
    const bool arrives = std::isfinite(one.arrived);
    rows.push_back(
        {.cells = {escape_html(at(outcome.operations, one.operation).name),
                   escape_html(to_string(network.cluster, at(network.devices, one.from))),
                   escape_html(to_string(network.cluster, at(network.devices, one.to))),
                   size(one.bytes), start({one.start}), arrives ? time({took}) : "never",
                   arrives ? fmt::format("{:.2f}x", took / one.alone) : "-"},
         .style = ""});
  }
  return section("The slowest messages", "Slowdown against an idle network, largest first.",
                 html_table({{"Item", false},
                             {"From", false},
                             {"To", false},
                             {"Size", true},
                             {"Start", true},
                             {"Time", true},
                             {"Slowdown", true}},
                            rows));
}

std::string storms(const SimulatedNetwork& network, const SimulationResult& outcome) {
  if (!outcome.packets || outcome.packets->storms.empty()) return "";
  const TimeFormat format({outcome.end});
  std::vector<TableRow> rows;
  for (const fabric::PfcStorm& storm : outcome.packets->storms) {
    std::vector<std::string> links;
    for (const std::uint32_t link : storm.tree.links)
      links.push_back(network.link_name(link));
    rows.push_back({.cells = {escape_html(simulate::storm_cause_text(network, storm.tree)),
                              format(storm.since), format(storm.at),
                              storm.over      ? format(*storm.over)
                              : storm.is_held ? "not by the end"
                                              : "free by the end",
                              escape_html(join(links, ", "))},
                    .style = ""});
  }
  return section("Pause storms",
                 "Queues of switches in which packets wait and none leaves, because pauses hold "
                 "them for more than 99 % of the time. The link nearest to the cause comes first.",
                 html_table({{"Cause", false},
                             {"Since", true},
                             {"Known at", true},
                             {"Over at", true},
                             {"Links that it holds", false}},
                            rows));
}

}  // namespace

std::string simulation_html(const Scenario& scenario, const SimulatedNetwork& network,
                            const SimulationResult& outcome) {
  const SimulationView view{network, outcome, marks_of(scenario, outcome.end)};
  constexpr const char* kLevels[] = {"flows", "packets", "packets where it matters, else flows"};
  const std::string body = tiles(outcome) + operations(outcome) + failures(scenario, outcome.end) +
                           storms(network, outcome) + links_over_time(view) +
                           queues_over_time(view) + polarisation(network, outcome) +
                           slowest(network, outcome);
  return html_page({.kind = "network simulation",
                    .title = scenario.name,
                    .place = network.cluster.name,
                    .facts = {fmt::format("{}, {}; simulated in {}",
                                          pluralized(network.cluster.servers.size(), "server"),
                                          pluralized(network.devices.size(), "device"),
                                          at(kLevels, static_cast<int>(outcome.level)))},
                    .origin = {"All figures are simulated; nothing was sent."}},
                   body);
}

}  // namespace regatta::report
