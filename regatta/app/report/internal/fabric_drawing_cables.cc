#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/fabric_drawing.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using topo::NodeKind;

constexpr std::size_t kMostLines = 320;  // between two tiers; more are bundled
constexpr std::size_t kManyLines = 48;   // more are drawn faint,
constexpr std::size_t kHaze = 240;       // and still more, fainter
constexpr double kBracketHeight = 12;

std::string link_title(const topo::Link& link) {
  return fmt::format("{}: {}", link.name, format_bits_per_second(link.rate));
}

// Links upwards from switches of `lower` with both ends drawn; only the first of several between
// the same two switches.
std::vector<const topo::Link*> drawn_links(const FabricDrawing& picture, NodeKind lower) {
  std::vector<const topo::Link*> links;
  for (const topo::Link& link : picture.graph.links) {
    if (picture.graph.nodes[link.a.index()].kind == lower && picture.switches.contains(link.a) &&
        picture.switches.contains(link.b) &&
        (links.empty() || links.back()->a != link.a || links.back()->b != link.b))
      links.push_back(&link);
  }
  return links;
}

std::string strength(std::size_t lines) {
  if (lines > kHaze) return " haze";
  return lines > kManyLines ? " faint" : " strong";
}

std::string single_lines(const FabricDrawing& picture,
                         const std::vector<const topo::Link*>& links) {
  std::string svg;
  for (const topo::Link* link : links) {
    const Box& low = picture.switches.at(link->a);
    const Box& high = picture.switches.at(link->b);
    const int rail = picture.graph.nodes[link->a.index()].rail;
    svg += line_svg({low.middle(), low.y}, {high.middle(), high.bottom()},
                    cable_width(picture, link->rate),
                    strength(links.size()) + rail_style(picture, rail), link_title(*link));
  }
  return svg;
}

// A line that joins the cables of neighbouring switches of a row.
struct Bracket {
  double left = 0;
  double right = 0;
  double y = 0;

  Point middle() const { return {(left + right) / 2, y}; }
};

std::string bracket_svg(const Bracket& bracket, double switch_y) {
  return svg_path(
      "cable strong",
      fmt::format("M{0} {1}V{2}H{3}V{1}", svg_number(bracket.left), svg_number(switch_y),
                  svg_number(bracket.y), svg_number(bracket.right)),
      {.attributes = "stroke-width=\"1.4\""});
}

// A line from the leaves of each plane of a block to each spine of the plane, for all their cables.
// Spines are numbered plane by plane.
std::string leaf_bundles(const FabricDrawing& picture) {
  const topo::Fabric& fabric = picture.cluster.fabric;
  const std::size_t leaves = as_index(fabric.rails / fabric.planes);
  std::string svg;
  std::size_t lines = 0;
  for (const GroupPlace& group : picture.layout.groups)
    lines += group.blocks.size() * group.spines.size();
  const double width = cable_width(picture, fabric.uplink);
  for (const GroupPlace& group : picture.layout.groups) {
    for (const BlockPlace& block : group.blocks) {
      std::vector<Bracket> brackets;
      for (std::size_t first = 0; first < block.leaves.size(); first += leaves) {
        const Box& box = block.leaves[first].box;
        brackets.push_back(
            {box.middle(), block.leaves[first + leaves - 1].box.middle(), box.y - kBracketHeight});
        svg += bracket_svg(brackets.back(), box.y);
      }
      for (const SwitchPlace& spine : group.spines) {
        const int number = spine.node.value - group.spines.front().node.value;
        const Bracket& bracket = at(brackets, number * fabric.planes / fabric.spines);
        svg += line_svg(bracket.middle(), {spine.box.middle(), spine.box.bottom()}, width,
                        strength(lines), "");
      }
    }
  }
  return svg;
}

// A line from each spine to its column, for the cables to all super-spines of it. Super-spines are
// numbered column by column, and spines so that spine j of each group belongs to column j.
std::string spine_bundles(const FabricDrawing& picture) {
  const topo::Fabric& fabric = picture.cluster.fabric;
  const int per_column = fabric.super_spines / fabric.spines;
  const int first = picture.layout.supers.front().node.value;
  std::map<int, Bracket> columns;
  for (const SwitchPlace& place : picture.layout.supers) {
    const double x = place.box.middle();
    const Bracket fresh{x, x, place.box.bottom() + kBracketHeight};
    columns.try_emplace((place.node.value - first) / per_column, fresh).first->second.right = x;
  }
  std::string svg;
  const double width = cable_width(picture, fabric.super_uplink);
  for (const GroupPlace& group : picture.layout.groups) {
    const int group_first = group.spines.front().node.value;
    for (const SwitchPlace& spine : group.spines) {
      const auto column = columns.find(spine.node.value - group_first);
      if (column == columns.end()) continue;
      svg +=
          line_svg({spine.box.middle(), spine.box.y}, column->second.middle(), width, " faint", "");
    }
  }
  for (const auto& [column, bracket] : columns)
    svg += bracket_svg(bracket, picture.layout.supers.front().box.bottom());
  return svg;
}

// One line for each cable.
std::string nic_cables(const FabricDrawing& picture, const BlockPlace& block) {
  std::string svg;
  for (const ServerPlace& server : block.servers) {
    for (const NicPlace& nic : server.nics) {
      const LinkId id = topo::nic_link(picture.graph, server.first, nic.nic);
      const topo::Link& link = picture.graph.links[id.index()];
      const Box& leaf = picture.switches.at(link.b);
      svg += line_svg(nic.at, {leaf.middle(), leaf.bottom()}, cable_width(picture, link.rate),
                      rail_style(picture, nic.rail), link_title(link));
    }
  }
  return svg;
}

// One line for each column of NICs, down to the last of them.
std::string rail_lines(const FabricDrawing& picture, const BlockPlace& block) {
  struct Column {
    NicPlace lowest;
    BytesPerSecond rate;
  };
  std::map<std::pair<int, double>, Column> columns;  // by NIC and x: stacks have one each
  for (const ServerPlace& server : block.servers) {
    for (const NicPlace& nic : server.nics) {
      Column& column = columns[{nic.nic, nic.at.x}];
      column.lowest = nic;
      column.rate = std::max(column.rate, picture.cluster.type_of(server.first).nic_rate);
    }
  }
  std::string svg;
  for (const auto& [key, column] : columns) {
    const Point at = column.lowest.at;
    svg += line_svg({at.x, block.leaves.front().box.bottom()}, at,
                    cable_width(picture, column.rate), rail_style(picture, column.lowest.rail), "");
  }
  return svg;
}

// One line from each leaf to the card that counts the servers.
std::string count_lines(const FabricDrawing& picture, const BlockPlace& block) {
  std::string svg;
  const ServerPlace& servers = block.servers.front();
  const topo::ServerType& type = picture.cluster.type_of(servers.first);
  if (type.nic_count == 0) return svg;
  const double width = cable_width(picture, type.nic_rate);
  for (const SwitchPlace& leaf : block.leaves) {
    const int rail = picture.graph.nodes[leaf.node.index()].rail;
    svg += line_svg({leaf.box.middle(), leaf.box.bottom()}, {leaf.box.middle(), servers.card.y},
                    width, rail_style(picture, rail), "");
  }
  return svg;
}

std::string server_cables(const FabricDrawing& picture, const BlockPlace& block) {
  switch (picture.layout.detail) {
    case FabricDetail::kCables:
      return nic_cables(picture, block);
    case FabricDetail::kRails:
    case FabricDetail::kCompact:
      return rail_lines(picture, block);
    case FabricDetail::kCounts:
      break;
  }
  return count_lines(picture, block);
}

// How many switches share a bundle: the leaves of a block that a spine is cabled to, or the
// super-spines of a column.
int switches_of_bundle(const topo::Fabric& fabric, NodeKind lower) {
  return lower == NodeKind::kLeaf ? fabric.rails / fabric.planes
                                  : fabric.super_spines / fabric.spines;
}

bool is_bundled(const FabricDrawing& picture, NodeKind lower) {
  const std::vector<SwitchPlace>& supers = picture.layout.supers;
  const bool has_columns = lower == NodeKind::kSpine && !supers.empty() && supers.front().count > 1;
  return switches_of_bundle(picture.cluster.fabric, lower) > 1 &&
         (has_columns || drawn_links(picture, lower).size() > kMostLines);
}

}  // namespace

std::size_t cables_of_line(const FabricDrawing& picture, NodeKind lower) {
  const topo::Fabric& fabric = picture.cluster.fabric;
  const int cables = lower == NodeKind::kLeaf ? fabric.uplink_cables : fabric.super_uplink_cables;
  return as_index(is_bundled(picture, lower) ? switches_of_bundle(fabric, lower) * cables : cables);
}

std::string cables_svg(const FabricDrawing& picture) {
  std::string svg;
  if (picture.cluster.fabric.tiers == 0) return svg;
  if (!picture.layout.supers.empty()) {
    svg += is_bundled(picture, NodeKind::kSpine)
               ? spine_bundles(picture)
               : single_lines(picture, drawn_links(picture, NodeKind::kSpine));
  }
  svg += is_bundled(picture, NodeKind::kLeaf)
             ? leaf_bundles(picture)
             : single_lines(picture, drawn_links(picture, NodeKind::kLeaf));
  for (const GroupPlace& group : picture.layout.groups) {
    for (const BlockPlace& block : group.blocks)
      svg += server_cables(picture, block);
  }
  return svg;
}

}  // namespace regatta::report
