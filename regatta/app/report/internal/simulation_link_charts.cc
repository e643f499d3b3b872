#include "regatta/app/report/internal/simulation_link_charts.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/html_text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using simulate::LinkStats;
using simulate::SimulatedNetwork;
using simulate::SimulationResult;

constexpr std::size_t kLinksDrawn = 48;
constexpr int kMapWidth = 960;
constexpr int kNameWidth = 190;
constexpr int kRowHeight = 14;

// A kind of link, and those of it.
struct Tier {
  std::string name;
  std::string style;
  std::vector<std::uint32_t> links;
};

std::vector<Tier> tiers_of(const SimulatedNetwork& network) {
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

double use(const SimulatedNetwork& network, const SimulationResult& outcome, std::uint32_t link,
           std::size_t bin) {
  return outcome.history.bytes(link, bin) / outcome.history.width() / network.links.capacity[link];
}

// A curve for each kind of link: value(links, bin) over the middles of `used` bins.
struct Curves {
  std::string_view title;
  double most = 100;
  std::size_t used = 0;
  double width = 1;  // of a bin, in seconds
};

template <typename Value>
std::string tier_chart(const SimulatedNetwork& network, double end, const Curves& curves,
                       Value&& value) {
  const TimeFormat format({end});
  const double x_most = format.number({end});
  Chart chart({.title = curves.title,
               .x_label = format.unit(),
               .x_most = x_most,
               .y_most = curves.most,
               .x_decimals = x_most < 10 ? 1 : 0,
               .y_decimals = curves.most < 10 ? 1 : 0,
               .width = 720,
               .height = 280});
  std::string legend = "<div class=\"legend\">";
  for (const Tier& tier : tiers_of(network)) {
    std::vector<std::pair<double, double>> points;
    for (std::size_t bin = 0; bin < curves.used; ++bin) {
      const double middle = (static_cast<double>(bin) + 0.5) * curves.width;
      points.emplace_back(format.number({std::min(middle, end)}), value(tier.links, bin));
    }
    chart.line(points, "curve " + tier.style);
    legend += fmt::format("<span><i class=\"key {}\"></i>{}</span> ", tier.style, tier.name);
  }
  return legend + "</div>\n" + chart.svg();
}

// How dark each cell of a map is, from 0 to 10.
struct Map {
  std::string_view label;
  std::vector<std::uint32_t> links;  // rows
  std::size_t used = 0;              // columns
  double width = 1;                  // of one, in seconds
};

// Cells of equal colour beside each other are one.
template <typename Level>
std::string map_row(const Map& map, std::uint32_t link, int y, Level&& level) {
  const double width = kMapWidth / static_cast<double>(map.used);
  std::string row;
  for (std::size_t bin = 0; bin < map.used;) {
    std::size_t end = bin + 1;
    while (end < map.used && level(link, end) == level(link, bin))
      ++end;
    if (level(link, bin) > 0) {
      row += fmt::format(
          "<rect class=\"busy\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" "
          "fill-opacity=\"{:.1f}\"/>",
          kNameWidth + static_cast<double>(bin) * width, y,
          static_cast<double>(end - bin) * width + 0.1, kRowHeight - 2, level(link, bin) / 10.0);
    }
    bin = end;
  }
  return row + "\n";
}

template <typename Level>
std::string map_svg(const SimulatedNetwork& network, double end, const Map& map, Level&& level) {
  const int height = static_cast<int>(map.links.size()) * kRowHeight + 24;
  std::string svg =
      fmt::format("<svg class=\"map\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                  kNameWidth + kMapWidth, height, map.label);
  for (std::size_t i = 0; i < map.links.size(); ++i) {
    const int y = static_cast<int>(i) * kRowHeight;
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kNameWidth - 6,
                       y + kRowHeight - 4, escape_html(network.link_name(map.links[i])));
    svg += map_row(map, map.links[i], y, level);
  }
  const TimeFormat format({end});
  const double span = map.width * static_cast<double>(map.used);
  for (int tick = 0; tick <= 4; ++tick) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
                       kNameWidth + kMapWidth * tick / 4, height - 6,
                       tick == 0   ? "start"
                       : tick == 4 ? "end"
                                   : "middle",
                       format({span * tick / 4}));
  }
  return svg + "</svg>\n";
}

// The links of which more(outcome) is largest, above 0, and of how many.
template <typename Value>
std::pair<std::vector<std::uint32_t>, std::size_t> largest(const SimulationResult& outcome,
                                                           Value&& value) {
  std::vector<LinkStats> links;
  for (const LinkStats& link : outcome.links)
    if (value(link) > 0) links.push_back(link);
  const std::size_t drawn = std::min(kLinksDrawn, links.size());
  std::ranges::partial_sort(links, links.begin() + static_cast<std::ptrdiff_t>(drawn),
                            [&](const LinkStats& a, const LinkStats& b) {
                              return value(a) != value(b) ? value(a) > value(b) : a.link < b.link;
                            });
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < drawn; ++i)
    numbers.push_back(links[i].link);
  return {numbers, links.size()};
}

}  // namespace

std::string links_over_time(const SimulatedNetwork& network, const SimulationResult& outcome) {
  if (outcome.history.used() == 0) return "";
  const std::size_t used = outcome.history.used();
  const double width = outcome.history.width();
  const auto mean_use = [&](const std::vector<std::uint32_t>& links, std::size_t bin) {
    double sum = 0;
    for (const std::uint32_t link : links)
      sum += use(network, outcome, link, bin);
    return 100 * std::min(1.0, sum / static_cast<double>(links.size()));
  };
  const auto level = [&](std::uint32_t link, std::size_t bin) {
    return std::min(10, static_cast<int>(std::lround(10 * use(network, outcome, link, bin))));
  };
  const Curves curves{"Mean use of the links of each kind, %", 100, used, width};
  const auto [links, all] = largest(outcome, [](const LinkStats& link) { return link.mean; });
  const std::string hint =
      all > links.size()
          ? fmt::format("The {} of {} links that were used most; the darker, the busier.",
                        links.size(), all)
          : "All links that were used; the darker, the busier.";
  return section("The network over time", "Each point is the mean of a bin of the run.",
                 tier_chart(network, outcome.end, curves, mean_use)) +
         section(
             "The busiest links", hint,
             map_svg(network, outcome.end, {"use of links over time", links, used, width}, level));
}

std::string queues_over_time(const SimulatedNetwork& network, const SimulationResult& outcome) {
  double most = 0;
  for (const LinkStats& link : outcome.links)
    most = std::max(most, link.queue);
  if (outcome.queues.used() == 0 || most <= 0) return "";
  const std::size_t used = outcome.queues.used();
  const double width = outcome.queues.width();
  const bool is_large = most >= 10e6;
  const double unit = is_large ? 1e6 : 1e3;
  const auto longest = [&](const std::vector<std::uint32_t>& links, std::size_t bin) {
    double bytes = 0;
    for (const std::uint32_t link : links)
      bytes = std::max(bytes, outcome.queues.bytes(link, bin));
    return bytes / unit;
  };
  const auto level = [&](std::uint32_t link, std::size_t bin) {
    return static_cast<int>(std::ceil(10 * std::min(1.0, outcome.queues.bytes(link, bin) / most)));
  };
  const Curves curves{is_large ? "The longest queue before the links of each kind, MB"
                               : "The longest queue before the links of each kind, kB",
                      most / unit, used, width};
  const auto [links, all] = largest(outcome, [](const LinkStats& link) { return link.queue; });
  const std::string hint = fmt::format("{} of {} links that something waited for; the darkest: {}.",
                                       links.size(), all, format_bytes(most));
  return section("Queues over time", "Each point is the most that waited in a bin of the run.",
                 tier_chart(network, outcome.end, curves, longest)) +
         section("The longest queues", hint,
                 map_svg(network, outcome.end, {"queues over time", links, used, width}, level));
}

}  // namespace regatta::report
