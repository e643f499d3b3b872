#include "regatta/app/report/internal/fabric_drawing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace regatta::report {
namespace {

constexpr int kRailColors = 8;  // of assets/fabric.css
constexpr int kTypeColors = 4;

}  // namespace

FabricDrawing draw_fabric(const topo::Cluster& cluster, Point corner, double least_width) {
  topo::Graph graph = topo::build_graph(cluster);
  FabricLayout layout = lay_out_fabric(cluster, graph, corner, least_width);
  FabricDrawing picture{.cluster = cluster,
                        .graph = std::move(graph),
                        .layout = std::move(layout),
                        .switches = {},
                        .types = {},
                        .domains = joined_servers(cluster),
                        .slowest = {}};
  for (const GroupPlace& group : picture.layout.groups) {
    for (const SwitchPlace& spine : group.spines)
      picture.switches[spine.node] = spine.box;
    for (const BlockPlace& block : group.blocks) {
      for (const SwitchPlace& leaf : block.leaves)
        picture.switches[leaf.node] = leaf.box;
    }
  }
  for (const SwitchPlace& super : picture.layout.supers)
    picture.switches[super.node] = super.box;
  for (const topo::Server& server : cluster.servers)
    picture.types.try_emplace(server.type, static_cast<int>(picture.types.size()));
  for (const topo::Link& link : picture.graph.links) {
    if (picture.slowest.value <= 0 || link.rate < picture.slowest) picture.slowest = link.rate;
  }
  return picture;
}

std::string rail_style(const FabricDrawing& picture, int rail) {
  if (picture.cluster.fabric.rails <= 1 || rail < 0) return "";
  return fmt::format(" rail{}", rail % kRailColors);
}

std::string type_style(const FabricDrawing& picture, const std::string& type) {
  return fmt::format("type{}", picture.types.at(type) % kTypeColors);
}

double cable_width(const FabricDrawing& picture, BytesPerSecond rate) {
  return std::clamp(1.5 * std::pow(rate / picture.slowest, 0.6), 1.5, 7.0);
}

std::string line_svg(Point from, Point to, double width, std::string_view style,
                     std::string_view title) {
  return svg_line(fmt::format("cable{}", style), from, to,
                  {.title = title, .attributes = fmt::format("stroke-width=\"{:.1f}\"", width)});
}

std::string box_svg(const Box& box, std::string_view style, double radius) {
  return svg_rect(style, box, {.attributes = fmt::format("rx=\"{:.0f}\"", radius)});
}

std::string dot_svg(Point at, double radius, std::string_view style) {
  return svg_circle(fmt::format("nic{}", style), at, radius);
}

std::string text_svg(Point at, TextStyle style, std::string_view text) {
  return svg_text(style.name, at, text, fmt::format("style=\"font-size:{}px\"", style.size));
}

}  // namespace regatta::report
