#include "regatta/app/report/internal/simulation_link_charts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/svg.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using simulate::LinkStats;
using simulate::SimulatedNetwork;

constexpr std::size_t kLinksDrawn = 48;

// A kind of link in one direction.
struct Tier {
  std::string name;
  std::string style;
  std::vector<std::uint32_t> links;
};

std::vector<Tier> tiers_of(const SimulatedNetwork& network) {
  std::vector<Tier> tiers = {
      {"NICs to leaves", "nic", {}},           {"leaves to NICs", "nic receives", {}},
      {"leaves to spines", "leaf", {}},        {"spines to leaves", "leaf receives", {}},
      {"spines to super-spines", "spine", {}}, {"super-spines to spines", "spine receives", {}}};
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

// Share of the capacity of `link` that was used in `bin`.
double use(const SimulationView& view, std::uint32_t link, std::size_t bin) {
  const auto& history = view.outcome.history;
  return history.bytes(link, bin) / history.width() / view.network.links.capacity[link];
}

// The bins of a history, and the unit of its values.
struct Bins {
  std::size_t used = 0;
  double width = 1;  // seconds
  double span() const { return static_cast<double>(used) * width; }
};

struct TierChart {
  std::string title;
  double most = 100;
  Bins bins;
  std::function<double(const std::vector<std::uint32_t>& links, std::size_t bin)> value;
};

// A curve for each kind of link over the middles of the bins. Kinds that stay at zero lie on the
// axis, where no reader sees them: they are named instead.
std::string tier_chart(const SimulationView& view, const TierChart& curves) {
  const Seconds end{view.outcome.end};
  const TimeFormat format(end);
  Chart chart({.title = curves.title,
               .x_label = std::string(format.unit()),
               .x_most = format.number(end),
               .ends_at_x_most = true,
               .y_most = curves.most,
               .x_decimals = tick_decimals(format.number(end)),
               .y_decimals = tick_decimals(curves.most),
               .height = 240});
  std::vector<std::pair<std::string, std::string>> entries;
  std::vector<std::string> idle;
  for (const Tier& tier : tiers_of(view.network)) {
    Chart::Points points;
    double most = 0;
    for (std::size_t bin = 0; bin < curves.bins.used; ++bin) {
      const double middle = (static_cast<double>(bin) + 0.5) * curves.bins.width;
      points.emplace_back(format.number({std::min(middle, end.value)}),
                          curves.value(tier.links, bin));
      most = std::max(most, points.back().second);
    }
    if (most < 0.001 * curves.most) {
      idle.push_back(tier.name);
      continue;
    }
    chart.line(points, tier.style);
    entries.emplace_back(tier.style, tier.name);
  }
  std::vector<ChartMark> marks = view.marks;
  for (ChartMark& mark : marks) {
    mark.from = format.number({mark.from});
    mark.to = format.number({mark.to});
  }
  chart.mark(marks);
  return legend(entries) + chart.html() +
         (idle.empty() ? "" : "<p class=\"hint\">Always at zero: " + join(idle, ", ") + ".</p>\n");
}

struct StripMap {
  std::string_view label;
  std::vector<std::uint32_t> links;  // rows
  Bins bins;
  // How dark a cell is, from 0 to 10.
  std::function<int(std::uint32_t link, std::size_t bin)> level;
};

// Row `i` of the map. Cells of equal darkness beside each other are one.
std::string strip(const StripMap& map, std::size_t i) {
  const std::uint32_t link = map.links[i];
  std::string svg =
      svg_open("strip", static_cast<double>(map.bins.used), 1, map.label,
               fmt::format("preserveAspectRatio=\"none\" style=\"grid-row:{}\"", i + 1));
  for (std::size_t bin = 0; bin < map.bins.used;) {
    const int level = map.level(link, bin);
    std::size_t end = bin + 1;
    while (end < map.bins.used && map.level(link, end) == level)
      ++end;
    if (level > 0)
      svg += svg_rect("", {static_cast<double>(bin), 0, static_cast<double>(end - bin), 1},
                      {.attributes = fmt::format("fill-opacity=\"{:.1f}\"", level / 10.0)});
    bin = end;
  }
  return svg + "</svg>";
}

std::string strips_html(const SimulationView& view, const StripMap& map) {
  const std::size_t rows = map.links.size();
  std::string html = "<div class=\"strips\">\n";
  for (std::size_t i = 0; i < rows; ++i)
    html += fmt::format("<span style=\"grid-row:{}\">{}</span>{}\n", i + 1,
                        escape_html(view.network.link_name(map.links[i])), strip(map, i));
  html += fmt::format("<div class=\"marks\" style=\"grid-row:1/{}\">{}</div>\n", rows + 1,
                      marks_html(view.marks, map.bins.span()));
  const TimeFormat format({view.outcome.end});
  html += "<div class=\"ticks\">";
  for (const double share : {0.0, 0.5, 1.0})
    html += fmt::format("<span>{}</span>", format({share * map.bins.span()}));
  return html + "</div></div>\n";
}

// The links of which value(link) is largest, above 0, and how many there are.
template <typename Value>
std::pair<std::vector<std::uint32_t>, std::size_t> largest(const SimulationView& view,
                                                           Value&& value) {
  std::vector<LinkStats> links;
  for (const LinkStats& link : view.outcome.links)
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

std::string links_over_time(const SimulationView& view) {
  const auto& history = view.outcome.history;
  if (history.used() == 0) return "";
  const Bins bins{history.used(), history.width()};
  const auto mean_use = [&](const std::vector<std::uint32_t>& links, std::size_t bin) {
    double sum = 0;
    for (const std::uint32_t link : links)
      sum += use(view, link, bin);
    return 100 * std::min(1.0, sum / static_cast<double>(links.size()));
  };
  const auto level = [&](std::uint32_t link, std::size_t bin) {
    return std::min(10, static_cast<int>(std::lround(10 * use(view, link, bin))));
  };
  const auto [links, all] = largest(view, [](const LinkStats& link) { return link.mean; });
  const std::string hint = fmt::format(
      "{} links that carried something, the busiest first: the darker, the busier.",
      all > links.size() ? fmt::format("The first {} of {}", links.size(), all) : "All");
  return section(
             "Load over time", "Each point is the mean of a bin of the run.",
             tier_chart(view, {"Mean load of the links of each kind, %", 100, bins, mean_use})) +
         section("The busiest links", hint,
                 strips_html(view, {"load of a link over time", links, bins, level}));
}

std::string queues_over_time(const SimulationView& view) {
  const auto& queues = view.outcome.queues;
  double most = 0;
  for (const LinkStats& link : view.outcome.links)
    most = std::max(most, link.queue);
  if (queues.used() == 0 || most <= 0) return "";
  const Bins bins{queues.used(), queues.width()};
  const ColumnFormat format = ColumnFormat::bytes(most);
  const auto longest = [&](const std::vector<std::uint32_t>& links, std::size_t bin) {
    double bytes = 0;
    for (const std::uint32_t link : links)
      bytes = std::max(bytes, queues.bytes(link, bin));
    return format.number(bytes);
  };
  const auto level = [&](std::uint32_t link, std::size_t bin) {
    return static_cast<int>(std::ceil(10 * std::min(1.0, queues.bytes(link, bin) / most)));
  };
  const auto [links, all] = largest(view, [](const LinkStats& link) { return link.queue; });
  const std::string hint =
      fmt::format("{} of the {} links with a queue, the longest first; the darkest: {}.",
                  links.size(), all, format(most));
  return section("Queues over time", "Each point is the longest queue in a bin of the run.",
                 tier_chart(view, {fmt::format("Longest queue before the links of each kind, {}",
                                               format.unit()),
                                   format.number(most), bins, longest})) +
         section("The longest queues", hint,
                 strips_html(view, {"queue of a link over time", links, bins, level}));
}

}  // namespace regatta::report
