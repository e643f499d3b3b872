#include "regatta/report/simulation_html.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/core/units_text.h"
#include "regatta/report/assets.h"
#include "regatta/report/html_chart.h"
#include "regatta/report/html_text.h"

namespace regatta::report {
namespace {

using simulate::LinkOutcome;
using simulate::Network;
using simulate::OperationOutcome;
using simulate::Outcome;
using simulate::Scenario;
using simulate::SlowMessage;

constexpr std::size_t kLinksDrawn = 48;
constexpr int kMapWidth = 960;
constexpr int kNameWidth = 190;
constexpr int kRowHeight = 14;

std::string rate_text(double rate) {
  return rate > 0 ? format_bytes_per_second({rate}) : std::string("-");
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string figures(const Outcome& outcome) {
  const TimeFormat format({outcome.end});
  double busiest = 0;
  for (const LinkOutcome& link : outcome.links)
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

std::string item_bar(const OperationOutcome& item, double end) {
  if (!(item.end <= end) || end <= 0) return "";
  return fmt::format(
      "<div class=\"track\" style=\"min-width:220px\"><div class=\"stack\"><i style=\"width:{:.3f}%"
      "\"></i><i class=\"forward\" style=\"width:{:.3f}%\"></i></div></div>",
      100 * item.start / end, 100 * std::max(item.time() / end, 0.002));
}

std::string items(const Outcome& outcome) {
  const TimeFormat format({outcome.end});
  std::vector<TableRow> rows;
  for (const OperationOutcome& item : outcome.operations) {
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

// A kind of link, and those of it.
struct Tier {
  std::string name;
  std::string style;
  std::vector<std::uint32_t> links;
};

std::vector<Tier> tiers_of(const Network& network) {
  std::vector<Tier> tiers = {{"NICs send", "forward", {}},
                             {"NICs receive", "backward", {}},
                             {"leaves to spines", "tp_comm", {}},
                             {"spines to leaves", "pp_comm", {}},
                             {"spines to super-spines", "dp_comm", {}},
                             {"super-spines to spines", "optimizer", {}}};
  for (std::uint32_t link = 0; link < 2 * network.graph.links.size(); ++link) {
    const topo::Link& cable = network.graph.links[link / 2];
    const topo::NodeKind kind = network.graph.nodes[cable.a.index()].kind;
    const std::size_t tier = kind == topo::NodeKind::kServer ? 0
                             : kind == topo::NodeKind::kLeaf ? 2
                                                             : 4;
    tiers[tier + link % 2].links.push_back(link);
  }
  std::erase_if(tiers, [](const Tier& tier) { return tier.links.empty(); });
  return tiers;
}

double use(const Network& network, const Outcome& outcome, std::uint32_t link, std::size_t bin) {
  return outcome.history.bytes(link, bin) / outcome.history.width() / network.links.capacity[link];
}

std::string tier_chart(const Network& network, const Outcome& outcome) {
  const double scale = outcome.end < 1e-3 ? 1e6 : outcome.end < 1 ? 1e3 : 1;
  Chart chart({.title = "Mean use of the links of each kind, %",
               .x_label = scale == 1     ? "s"
                          : scale == 1e3 ? "ms"
                                         : "us",
               .x_most = outcome.end * scale,
               .y_most = 100,
               .x_decimals = outcome.end * scale < 10 ? 1 : 0,
               .y_decimals = 0,
               .width = 720,
               .height = 280});
  std::string legend = "<div class=\"legend\">";
  for (const Tier& tier : tiers_of(network)) {
    std::vector<std::pair<double, double>> points;
    for (std::size_t bin = 0; bin < outcome.history.used(); ++bin) {
      double sum = 0;
      for (const std::uint32_t link : tier.links)
        sum += use(network, outcome, link, bin);
      const double middle = (static_cast<double>(bin) + 0.5) * outcome.history.width();
      points.emplace_back(std::min(middle, outcome.end) * scale,
                          100 * std::min(1.0, sum / static_cast<double>(tier.links.size())));
    }
    chart.line(points, "curve " + tier.style);
    legend += fmt::format("<span><i class=\"key {}\"></i>{}</span> ", tier.style, tier.name);
  }
  return legend + "</div>\n" + chart.svg();
}

// Cells of equal colour beside each other are one.
std::string map_row(const Network& network, const Outcome& outcome, std::uint32_t link, int y) {
  const auto bins = static_cast<double>(outcome.history.used());
  const double width = kMapWidth / bins;
  const auto level = [&](std::size_t bin) {
    return std::min(10, static_cast<int>(std::lround(10 * use(network, outcome, link, bin))));
  };
  std::string row =
      fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kNameWidth - 6,
                  y + kRowHeight - 4, escape_html(network.link_name(link)));
  for (std::size_t bin = 0; bin < outcome.history.used();) {
    std::size_t end = bin + 1;
    while (end < outcome.history.used() && level(end) == level(bin))
      ++end;
    if (level(bin) > 0) {
      row += fmt::format(
          "<rect class=\"busy\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" "
          "fill-opacity=\"{:.1f}\"/>",
          kNameWidth + static_cast<double>(bin) * width, y,
          static_cast<double>(end - bin) * width + 0.1, kRowHeight - 2, level(bin) / 10.0);
    }
    bin = end;
  }
  return row + "\n";
}

std::string link_map(const Network& network, const Outcome& outcome) {
  std::vector<LinkOutcome> busy;
  for (const LinkOutcome& link : outcome.links)
    if (link.bytes > 0) busy.push_back(link);
  const std::size_t drawn = std::min(kLinksDrawn, busy.size());
  std::ranges::partial_sort(busy, busy.begin() + static_cast<std::ptrdiff_t>(drawn),
                            [](const LinkOutcome& a, const LinkOutcome& b) {
                              return a.mean != b.mean ? a.mean > b.mean : a.link < b.link;
                            });
  const int height = static_cast<int>(drawn) * kRowHeight + 24;
  std::string svg = fmt::format(
      "<svg class=\"map\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"use of links over "
      "time\">\n",
      kNameWidth + kMapWidth, height);
  for (std::size_t i = 0; i < drawn; ++i)
    svg += map_row(network, outcome, busy[i].link, static_cast<int>(i) * kRowHeight);
  const TimeFormat format({outcome.end});
  const double span = outcome.history.width() * static_cast<double>(outcome.history.used());
  for (int tick = 0; tick <= 4; ++tick) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
                       kNameWidth + kMapWidth * tick / 4, height - 6,
                       tick == 0   ? "start"
                       : tick == 4 ? "end"
                                   : "middle",
                       format({span * tick / 4}));
  }
  const std::string hint =
      busy.size() > drawn
          ? fmt::format("The {} of {} links that were used most; the darker, the busier.", drawn,
                        busy.size())
          : "All links that were used; the darker, the busier.";
  return section("The busiest links", hint, svg + "</svg>\n");
}

std::string slowest(const Network& network, const Outcome& outcome) {
  std::vector<TableRow> rows;
  for (const SlowMessage& one : outcome.slowest) {
    const TimeFormat format({std::isfinite(one.arrived) ? one.arrived - one.start : one.alone});
    rows.push_back(
        {.cells = {escape_html(outcome.operations[one.operation].name),
                   escape_html(to_string(network.cluster, network.devices[one.from])),
                   escape_html(to_string(network.cluster, network.devices[one.to])),
                   format_bytes({static_cast<long long>(one.bytes)}), format({one.start}),
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

constexpr const char* kStyle =
    ".map { width: 100%; } .map text { font-size: 10px; fill: var(--soft); } .map .busy { fill: "
    "var(--forward, #2f6fc9); }\n"
    ".curve { fill: none !important; stroke-width: 1.6; background: none !important; }\n"
    ".curve.forward { stroke: var(--forward); } .curve.backward { stroke: var(--backward); }\n"
    ".curve.tp_comm { stroke: var(--tp_comm); } .curve.pp_comm { stroke: var(--pp_comm); }\n"
    ".curve.dp_comm { stroke: var(--dp_comm); } .curve.optimizer { stroke: var(--optimizer); }\n"
    "main { max-width: 1320px; }\n";

}  // namespace

std::string simulation_html(const Scenario& scenario, const Network& network,
                            const Outcome& outcome) {
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
  if (outcome.history.used() > 0) {
    html += section("The network over time", "Each point is the mean of a bin of the run.",
                    tier_chart(network, outcome));
    html += link_map(network, outcome);
  }
  html += slowest(network, outcome);
  return html + "</main></body></html>\n";
}

}  // namespace regatta::report
