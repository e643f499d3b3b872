#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/assets.h"
#include "regatta/app/report/internal/fabric_drawing.h"
#include "regatta/app/report/internal/fabric_drawing_plan.h"
#include "regatta/app/report/internal/fabric_layout.h"
#include "regatta/app/report/pages.h"

namespace regatta::report {
namespace {

constexpr double kMargin = 24;
constexpr double kNotesWidth = 188;  // left of the fabric
constexpr double kHeading = 84;
constexpr double kLeastFabricWidth = 640;  // of the fabric

std::string switch_svg(const FabricDrawing& picture, const SwitchPlace& place,
                       std::string_view style) {
  const topo::Node& node = picture.graph.nodes[place.node.index()];
  const NodeId last{place.node.value + place.count - 1};
  const std::string title =
      place.count == 1 ? node.name : node.name + " to " + picture.graph.nodes[last.index()].name;
  std::string svg = fmt::format("<g class=\"{}\"><title>{}</title>", style, xml_text(title));
  for (int behind = place.count > 1 ? 2 : 0; behind >= 0; --behind) {
    const Box box{place.box.x + 2.5 * behind, place.box.y - 2.5 * behind, place.box.width,
                  place.box.height};
    svg += box_svg(box, "switch" + rail_style(picture, node.rail), 4);
  }
  const bool is_number = !place.label.empty() && std::isdigit(place.label.front()) != 0;
  const double size = is_number ? 10 : 12;
  if (!place.label.empty())
    svg += text_svg({place.box.middle(), place.box.y + place.box.height / 2 + 0.36 * size},
                    {size, "middle"}, place.label);
  return svg + "</g>\n";
}

// The domains that begin in so many servers.
std::size_t domains_within(const FabricDrawing& picture, ServerId first, int count) {
  const auto begins_there = [&](const DomainServers& domain) {
    return domain.first.value >= first.value && domain.first.value < first.value + count;
  };
  return static_cast<std::size_t>(
      std::count_if(picture.domains.begin(), picture.domains.end(), begins_there));
}

// A frame around the cards of the servers of each domain; one for each stack that it is part of.
std::string domains_svg(const FabricDrawing& picture, const BlockPlace& block) {
  constexpr double kAround = 1.8;
  if (picture.layout.detail == FabricDetail::kCounts) return "";
  std::string svg;
  for (const DomainServers& domain : picture.domains) {
    std::vector<Box> frames;
    for (const ServerPlace& server : block.servers) {
      const int at = server.first.value - domain.first.value;
      if (at < 0 || at >= domain.count) continue;
      const Box& card = server.card;
      const bool is_beside = picture.layout.detail == FabricDetail::kCables;
      if (frames.empty() || (!is_beside && card.x > frames.back().right())) frames.push_back(card);
      Box& frame = frames.back();
      frame.width = card.right() - frame.x;
      frame.height = card.bottom() - frame.y;
    }
    for (const Box& frame : frames) {
      svg += fmt::format(
          "<g class=\"scale-up\"><title>{}</title>",
          xml_text(fmt::format("scale-up domain: {}", servers_text(picture.cluster, domain))));
      svg += box_svg({frame.x - kAround, frame.y - kAround, frame.width + 2 * kAround,
                      frame.height + 2 * kAround},
                     "domain", 6) +
             "</g>\n";
    }
  }
  return svg;
}

// The numbers of servers and devices that a card stands for.
std::string counted_text(const FabricDrawing& picture, const ServerPlace& place) {
  const double x = place.card.middle();
  std::size_t devices = 0;
  for (int i = 0; i < place.count; ++i)
    devices += as_index(picture.cluster.type_of(ServerId{place.first.value + i}).device_count);
  const std::size_t domains = domains_within(picture, place.first, place.count);
  return text_svg({x, place.card.y + 19}, {12, "middle"},
                  pluralized(place.count, "server", "servers") +
                      (domains > 0 ? ", " + pluralized(domains, "domain", "domains") : "")) +
         text_svg({x, place.card.y + 34}, {11, "middle soft"}, place.label) +
         text_svg({x, place.card.y + 49}, {11, "middle soft"},
                  pluralized(devices, "device", "devices"));
}

std::string server_text(const FabricDrawing& picture, const ServerPlace& place) {
  const Box& card = place.card;
  switch (picture.layout.detail) {
    case FabricDetail::kCables:
      return text_svg({card.middle(), card.bottom() - 9}, {12, "middle"}, place.label);
    case FabricDetail::kRails:
      return text_svg({card.x + 6, card.y + card.height / 2 + 4.3}, {12, ""}, place.label);
    case FabricDetail::kCompact:
      return text_svg({card.x + 4, card.y + card.height / 2 + 3.4}, {9.5, ""}, place.label);
    case FabricDetail::kCounts:
      break;
  }
  return counted_text(picture, place);
}

// The parts above the cables: name, devices, NICs.
std::string server_svg(const FabricDrawing& picture, const ServerPlace& place) {
  const topo::Server& server = picture.cluster.servers[place.first.index()];
  std::string svg = fmt::format("<g class=\"server\"><title>{}</title>",
                                xml_text(fmt::format("{}: {}", server.name, server.type)));
  const std::string style = "device " + type_style(picture, server.type);
  for (const Box& device : place.devices)
    svg += box_svg(device, style, 2);
  const double radius = picture.layout.detail == FabricDetail::kCompact ? 2.8 : 4.2;
  for (const NicPlace& nic : place.nics)
    svg += dot_svg(nic.at, radius, rail_style(picture, nic.rail));
  return svg + server_text(picture, place) + "</g>\n";
}

std::string gap_svg(const GapPlace& gap) {
  std::string svg = "<g class=\"left-out\">" + box_svg(gap.box, "gap", 5);
  double y = gap.box.y + gap.box.height / 2 - 8 * static_cast<double>(gap.lines.size() - 1) + 4;
  for (const std::string& line : gap.lines) {
    svg += text_svg({gap.box.middle(), y}, {gap.box.width < 60 ? 10.0 : 12.0, "middle"}, line);
    y += 16;
  }
  return svg + "</g>\n";
}

// Frames and cards, the cables over them, and the labels over the cables.
std::string fabric_body(const FabricDrawing& picture) {
  const FabricLayout& layout = picture.layout;
  std::string below;
  std::string above;
  for (const GroupPlace& group : layout.groups) {
    if (!layout.supers.empty()) below += box_svg(group.frame, "group", 10);
    for (const BlockPlace& block : group.blocks) {
      below += box_svg(block.frame, "block", 8);
      below += domains_svg(picture, block);
      for (const ServerPlace& server : block.servers) {
        below += box_svg(server.card, "card", 5);
        above += server_svg(picture, server);
      }
      for (const SwitchPlace& leaf : block.leaves)
        above += switch_svg(picture, leaf, "leaf");
    }
    for (const SwitchPlace& spine : group.spines)
      above += switch_svg(picture, spine, "spine");
  }
  for (const SwitchPlace& super : layout.supers)
    above += switch_svg(picture, super, "super");
  for (const GapPlace& gap : layout.gaps)
    above += gap_svg(gap);
  return below + cables_svg(picture) + above;
}

}  // namespace

std::string fabric_svg(const topo::Cluster& cluster) {
  const FabricDrawing picture =
      draw_fabric(cluster, {kMargin + kNotesWidth, kMargin + kHeading}, kLeastFabricWidth);
  const Box& area = picture.layout.area;
  const double width = std::ceil(area.right() + kMargin);
  // The notes beside a row of servers may reach further down than the servers.
  const double bottom = std::max(area.bottom(), picture.layout.servers_y + 72);
  Point legend{kMargin, bottom + 30};
  const std::string legend_text = legend_svg(picture, width - kMargin, legend);
  const double height = std::ceil(legend.y + kMargin);
  const std::string label = "the fabric of " + cluster.name;
  std::string svg = svg_open("fabric", width, height, label,
                             fmt::format("xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" "
                                         "height=\"{:.0f}\"",
                                         width, height));
  svg += fmt::format("<title>{}</title>\n<style>\n{}</style>\n", xml_text(label), fabric_css());
  svg += box_svg({0, 0, width, height}, "page", 0);
  svg += heading_svg(picture, {kMargin, kMargin});
  svg += tier_notes_svg(picture, kMargin);
  return svg + fabric_body(picture) + legend_text + "</svg>\n";
}

}  // namespace regatta::report
