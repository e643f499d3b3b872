#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/html_text.h"
#include "regatta/app/report/internal/simulation_link_charts.h"
#include "regatta/app/report/pages.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/network/diag/polarisation.h"
#include "regatta/network/simulate/storm_cause.h"

namespace regatta::report {
namespace {

using simulate::LinkStats;
using simulate::OperationStats;
using simulate::Scenario;
using simulate::SimulatedNetwork;
using simulate::SimulationResult;
using simulate::SlowMessage;

std::string rate_text(double rate) {
  return rate > 0 ? format_bytes_per_second({rate}) : std::string("-");
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string figures(const SimulationResult& outcome) {
  const TimeFormat format({outcome.end});
  double busiest = 0;
  for (const LinkStats& link : outcome.links)
    busiest = std::max(busiest, link.mean);
  std::string html = "<div class=\"figures\">";
  html += figure(outcome.unfinished == 0 ? "all has arrived after" : "the last arrives after",
                 format({outcome.end}), "");
  html += figure("messages", count_text(static_cast<long long>(outcome.messages)),
                 outcome.unfinished == 0
                     ? "all of them arrive"
                     : fmt::format("{} of the flows never end", outcome.unfinished));
  html += figure("the busiest link was used", percent(busiest), "of all the time");
  if (outcome.ports.most > 0) {
    html += figure("connections that meet on one link", std::to_string(outcome.ports.most),
                   fmt::format("with planned ports; {} by chance", outcome.ports.most_by_chance));
  }
  return html + "</div>\n";
}

std::string item_bar(const OperationStats& item, double end) {
  if (!(item.end <= end) || end <= 0) return "";
  return fmt::format(
      "<div class=\"track\" style=\"min-width:220px\"><div class=\"stack\"><i style=\"width:{:.3f}%"
      "\"></i><i class=\"forward\" style=\"width:{:.3f}%\"></i></div></div>",
      100 * item.start / end, 100 * std::max(item.time() / end, 0.002));
}

std::string items(const SimulationResult& outcome) {
  const TimeFormat format({outcome.end});
  std::vector<TableRow> rows;
  for (const OperationStats& item : outcome.operations) {
    const bool ends = std::isfinite(item.end);
    rows.push_back({.cells = {escape_html(item.name), item_bar(item, outcome.end),
                              std::isfinite(item.start) ? format({item.start}) : "never",
                              ends ? format({item.time()}) : "never ends",
                              ends && item.time() > 0 ? percent(item.bound / item.time()) : "-",
                              rate_text(item.algbw), rate_text(item.busbw),
                              count_text(static_cast<long long>(item.messages))},
                    .style = ""});
  }
  const std::string table = html_table({{"Item", false},
                                        {"When", false},
                                        {"Start", true},
                                        {"Time", true},
                                        {"Of the NICs' bound", true},
                                        {"algbw", true},
                                        {"busbw", true},
                                        {"Messages", true}},
                                       rows);
  return section("What was sent",
                 "100 % of the bound: the busiest NIC never waits. algbw and busbw as nccl-tests "
                 "defines them.",
                 table);
}

std::string polarisation(const SimulatedNetwork& network, const SimulationResult& outcome) {
  std::string html;
  for (const diag::Polarisation& one : outcome.polarisation) {
    std::vector<std::string> names;
    for (const std::uint32_t link : one.empty)
      names.push_back(escape_html(network.link_name(link)));
    html += section("Tiers that hash alike",
                    "Links that carry nothing, though flows enough come to their switches.",
                    "<p>" + escape_html(diag::to_string(network.graph, one)) + "</p>\n<p>" +
                        join(names, ", ") + "</p>\n");
  }
  return html;
}

std::string slowest(const SimulatedNetwork& network, const SimulationResult& outcome) {
  std::vector<TableRow> rows;
  for (const SlowMessage& one : outcome.slowest) {
    const TimeFormat format({std::isfinite(one.arrived) ? one.arrived - one.start : one.alone});
    rows.push_back(
        {.cells = {escape_html(outcome.operations[one.operation].name),
                   escape_html(to_string(network.cluster, network.devices[one.from])),
                   escape_html(to_string(network.cluster, network.devices[one.to])),
                   format_bytes(one.bytes), format({one.start}),
                   std::isfinite(one.arrived) ? format({one.arrived - one.start}) : "never",
                   std::isfinite(one.arrived)
                       ? fmt::format("{:.2f}", (one.arrived - one.start) / one.alone)
                       : "-"},
         .style = ""});
  }
  if (rows.empty()) return "";
  return section("The slowest messages",
                 "By how many times as long they take as with their NICs alone.",
                 html_table({{"Item", false},
                             {"From", false},
                             {"To", false},
                             {"Size", true},
                             {"Start", true},
                             {"Takes", true},
                             {"Times alone", true}},
                            rows));
}

std::string storms(const SimulatedNetwork& network, const SimulationResult& outcome) {
  if (!outcome.packets || outcome.packets->storms.empty()) return "";
  const TimeFormat format({outcome.end});
  std::vector<TableRow> rows;
  for (const fabric::PfcStorm& storm : outcome.packets->storms) {
    std::string links;
    for (const std::uint32_t link : storm.tree.links)
      links += (links.empty() ? "" : ", ") + network.link_name(link);
    rows.push_back({.cells = {escape_html(simulate::storm_cause_text(network, storm.tree)),
                              format(storm.since), format(storm.at),
                              storm.over      ? format(*storm.over)
                              : storm.is_held ? "not by the end"
                                              : "free by the end",
                              escape_html(links)},
                    .style = ""});
  }
  return section("Pause storms",
                 "Queues of switches in which packets wait, none goes, and pauses hold them for "
                 "more than 99 % of the time; the link nearest to the cause first.",
                 html_table({{"Cause", false},
                             {"Since", true},
                             {"Known at", true},
                             {"Over at", true},
                             {"Links that it holds", false}},
                            rows));
}

constexpr const char* kStyle =
    ".map { width: 100%; } .map text { font-size: 10px; fill: var(--soft); } .map .busy { fill: "
    "var(--forward, #2f6fc9); }\n"
    ".curve { fill: none !important; stroke-width: 1.6; background: none !important; }\n"
    ".curve.forward { stroke: var(--forward); } .curve.backward { stroke: var(--backward); }\n"
    ".curve.tp_comm { stroke: var(--tp_comm); } .curve.pp_comm { stroke: var(--pp_comm); }\n"
    ".curve.dp_comm { stroke: var(--dp_comm); } .curve.optimizer { stroke: var(--optimizer); }\n"
    "main { max-width: 1320px; }\n";

}  // namespace

std::string simulation_html(const Scenario& scenario, const SimulatedNetwork& network,
                            const SimulationResult& outcome) {
  const std::string name = escape_html(scenario.name);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n"
      "<style>{}{}</style></head>\n<body><main>\n<h1>{}</h1>\n<p class=\"sub\">simulated on {}, "
      "{} servers, {} devices</p>\n",
      name, report_css(), kStyle, name, escape_html(network.cluster.name),
      network.cluster.servers.size(), network.devices.size());
  html += figures(outcome);
  html += items(outcome);
  html += storms(network, outcome);
  html += links_over_time(network, outcome);
  html += queues_over_time(network, outcome);
  html += polarisation(network, outcome);
  html += slowest(network, outcome);
  return html + "</main></body></html>\n";
}

}  // namespace regatta::report
