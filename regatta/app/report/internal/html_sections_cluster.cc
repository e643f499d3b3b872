#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_sections.h"
#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/internal/link_rows.h"
#include "regatta/app/report/internal/svg.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"

namespace regatta::report {
namespace {

using topo::Node;
using topo::NodeKind;

// Above this the boxes would be too small to read.
constexpr std::size_t kServersShown = 24;
constexpr std::size_t kCableNames = 40;  // links whose load is written beside them
constexpr double kWidth = 1080;
constexpr double kTierHeight = 116;
constexpr double kSwitchWidth = 92;
constexpr double kSwitchHeight = 32;
constexpr double kDeviceHeight = 36;

struct Layout {
  std::vector<Point> centers;  // per node
  double height = 0;
  double server_width = 0;
};

std::size_t tier_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::kSuperSpine:
      return 0;
    case NodeKind::kSpine:
      return 1;
    case NodeKind::kLeaf:
      return 2;
    case NodeKind::kServer:
      break;
  }
  return 3;
}

// Tiers from the top, the nodes of each spread evenly.
Layout layout_of(const topo::Graph& graph) {
  std::array<std::size_t, 4> counts{};
  for (const Node& node : graph.nodes)
    ++counts[tier_of(node)];
  std::array<double, 4> tops{};
  double top = 26;
  for (std::size_t tier = 0; tier < counts.size(); ++tier) {
    tops[tier] = top;
    if (counts[tier] > 0) top += kTierHeight;
  }
  Layout layout;
  layout.height = tops[3] + 84;
  layout.server_width = std::min(200.0, kWidth / static_cast<double>(counts[3]) - 14);
  std::array<std::size_t, 4> seen{};
  for (const Node& node : graph.nodes) {
    const std::size_t tier = tier_of(node);
    const double share =
        (static_cast<double>(seen[tier]++) + 0.5) / static_cast<double>(counts[tier]);
    layout.centers.push_back({kWidth * share, tops[tier]});
  }
  return layout;
}

// Load of one cable, the busier direction counts.
struct CableLoad {
  double share = 0;
  std::string title;
};

std::map<LinkId, CableLoad> cable_loads(const topo::Graph& graph, const PlanRun& run) {
  const bool has_measured = !run.measured.traffic.empty();
  std::map<LinkId, CableLoad> loads;
  for (const LinkRow& row : link_rows(graph, run)) {
    CableLoad& load = loads[row.link.link];
    const double share = has_measured ? row.measured_share : row.predicted_share;
    load.share = std::max(load.share, share);
    load.title += fmt::format("\n{} to {}: {} per step, {}", row.from, row.to,
                              format_bytes(has_measured ? row.measured : row.predicted),
                              format_percent(share));
  }
  return loads;
}

// From blue (idle) over amber (half) to red (full).
std::string load_color(double share) {
  struct Color {
    double red, green, blue;
  };
  constexpr Color kIdle{86, 140, 214};
  constexpr Color kHalf{236, 158, 52};
  constexpr Color kFull{214, 62, 48};
  const Color& from = share < 0.5 ? kIdle : kHalf;
  const Color& to = share < 0.5 ? kHalf : kFull;
  const double t = share < 0.5 ? 2 * share : 2 * share - 1;
  return fmt::format("rgb({:.0f} {:.0f} {:.0f})", from.red + t * (to.red - from.red),
                     from.green + t * (to.green - from.green),
                     from.blue + t * (to.blue - from.blue));
}

struct Cable {
  Point low;
  Point high;
};

Cable cable_of(const topo::Link& link, const Layout& layout) {
  Point low = layout.centers[link.a.index()];
  Point high = layout.centers[link.b.index()];
  if (low.y < high.y) std::swap(low, high);
  return {low, {high.x, high.y + kSwitchHeight}};
}

std::string cable_svg(const topo::Link& link, const CableLoad& load, const Layout& layout) {
  const Cable cable = cable_of(link, layout);
  const double share = std::min(1.0, load.share);
  return svg_line(
      "cable", cable.low, cable.high,
      {.title = fmt::format("{} ({}){}", link.name, format_bits_per_second(link.rate), load.title),
       .attributes =
           fmt::format("stroke=\"{}\" stroke-width=\"{:.1f}\"", load_color(share), 2 + 6 * share)});
}

std::string cable_name_svg(const topo::Link& link, const CableLoad& load, const Layout& layout) {
  const Cable cable = cable_of(link, layout);
  // Nearer to the lower end: there the cables of different nodes have not crossed yet.
  constexpr double kAt = 0.3;
  return svg_text("cable-name",
                  {cable.low.x + kAt * (cable.high.x - cable.low.x),
                   cable.low.y + kAt * (cable.high.y - cable.low.y) + 4},
                  fmt::format("{:.0f} %", 100 * load.share));
}

std::string switch_svg(const Node& node, Point at) {
  return svg_rect("node switch", {at.x - kSwitchWidth / 2, at.y, kSwitchWidth, kSwitchHeight},
                  {.attributes = "rx=\"6\""}) +
         svg_text("", {at.x, at.y + 20}, node.name);
}

std::string device_svg(const RunResult& result, topo::DeviceRef device, Point corner,
                       double width) {
  const plan::Placement& placement = result.main.plan.placement;
  const auto found = std::find(placement.begin(), placement.end(), device);
  std::string svg =
      svg_rect(found == placement.end() ? "device idle" : "device",
               {corner.x, corner.y, width, kDeviceHeight}, {.attributes = "rx=\"4\""});
  if (found == placement.end() || width < 26) return svg;
  const Rank rank{static_cast<int>(found - placement.begin())};
  const auto at = workload::coordinates_of(result.main.plan.strategy, rank);
  const double middle = corner.x + width / 2;
  svg += svg_text("", {middle, corner.y + 15},
                  fmt::format("{}{}", width > 56 ? "rank " : "", rank.value));
  if (width > 70)
    svg += svg_text("minor", {middle, corner.y + 29},
                    fmt::format("tp{} pp{} dp{}", at.tp, at.pp, at.dp));
  return svg;
}

std::string server_svg(const RunResult& result, ServerId server, Point at, double width) {
  const int devices = result.cluster.type_of(server).device_count;
  std::string svg =
      svg_rect("node", {at.x - width / 2, at.y, width, 72}, {.attributes = "rx=\"7\""}) +
      svg_text("", {at.x, at.y + 17}, result.cluster.servers[server.index()].name);
  const double each = (width - 10) / devices;
  for (int i = 0; i < devices; ++i)
    svg +=
        device_svg(result, {server, i}, {at.x - width / 2 + 5 + each * i + 2, at.y + 27}, each - 4);
  return svg;
}

}  // namespace

std::string cluster_section(const RunResult& result) {
  const topo::Graph graph = topo::build_graph(result.cluster);
  if (result.cluster.servers.empty() || result.cluster.servers.size() > kServersShown) return "";
  const Layout layout = layout_of(graph);
  const auto loads = cable_loads(graph, result.main);
  std::string svg = svg_open("net", kWidth, layout.height, "cluster with the load of each link");
  std::string names;  // above all cables
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const auto found = loads.find({static_cast<int>(i)});
    const CableLoad load = found == loads.end() ? CableLoad{} : found->second;
    svg += cable_svg(graph.links[i], load, layout);
    names += cable_name_svg(graph.links[i], load, layout);
  }
  if (graph.links.size() <= kCableNames) svg += names;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind == NodeKind::kServer)
      svg += server_svg(result, {static_cast<int>(i)}, layout.centers[i], layout.server_width);
    else
      svg += switch_svg(graph.nodes[i], layout.centers[i]);
  }
  svg += "</svg>\n";
  const bool has_measured = !result.main.measured.traffic.empty();
  return section("The cluster and its ranks",
                 fmt::format("Each link with the {} load of its busier direction over a whole "
                             "step: blue is idle, amber half, red full; point at it for both.",
                             has_measured ? "measured" : "predicted"),
                 "<div class=\"scroll\">" + svg + "</div>\n");
}

}  // namespace regatta::report
