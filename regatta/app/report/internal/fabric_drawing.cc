#include "regatta/app/report/internal/fabric_drawing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "regatta/app/report/html_text.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

constexpr int kRailColours = 8;  // of assets/fabric.css
constexpr int kTypeColours = 4;

}  // namespace

FabricDrawing draw_fabric(const topo::Cluster& cluster, Point corner, double least_width) {
  topo::Graph graph = topo::build_graph(cluster);
  FabricLayout layout = lay_out_fabric(cluster, graph, corner, least_width);
  FabricDrawing picture{.cluster = cluster,
                        .graph = std::move(graph),
                        .layout = std::move(layout),
                        .switches = {},
                        .types = {},
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
  return fmt::format(" rail{}", rail % kRailColours);
}

std::string type_style(const FabricDrawing& picture, const std::string& type) {
  return fmt::format("type{}", picture.types.at(type) % kTypeColours);
}

double cable_width(const FabricDrawing& picture, BytesPerSecond rate) {
  return std::clamp(1.5 * std::pow(rate / picture.slowest, 0.6), 1.5, 7.0);
}

std::string xml_text(std::string_view text) {
  constexpr std::size_t kLongest = 400;
  return escape_html(printable(text, kLongest));
}

std::string line_svg(Point from, Point to, double width, std::string_view style,
                     std::string_view title) {
  return fmt::format(
      "<line class=\"cable{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
      "stroke-width=\"{:.1f}\">{}</line>\n",
      style, from.x, from.y, to.x, to.y, width,
      title.empty() ? "" : "<title>" + xml_text(title) + "</title>");
}

std::string box_svg(const Box& box, std::string_view style, double radius) {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "rx=\"{:.0f}\"/>",
      style, box.x, box.y, box.width, box.height, radius);
}

std::string dot_svg(Point at, double radius, std::string_view style) {
  return fmt::format("<circle class=\"nic{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>", style,
                     at.x, at.y, radius);
}

std::string text_svg(Point at, TextStyle look, std::string_view text) {
  return fmt::format(
      "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" style=\"font-size:{}px\">{}</text>\n",
      look.style, at.x, at.y, look.size, xml_text(text));
}

}  // namespace regatta::report
