// report/internal/fabric_drawing.h: what the parts of a fabric's picture are drawn from, and the
// shapes that they are drawn with.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "regatta/app/report/internal/fabric_layout.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"

namespace regatta::report {

struct FabricDrawing {
  const topo::Cluster& cluster;
  topo::Graph graph;
  FabricLayout layout;
  std::map<NodeId, Box> switches;    // those that are drawn
  std::map<std::string, int> types;  // of the servers, numbered
  BytesPerSecond slowest;            // of all cables
};

FabricDrawing draw_fabric(const topo::Cluster& cluster, Point corner, double least_width);

// How many cables from nodes of `lower` upwards one line stands for.
std::size_t cables_of_line(const FabricDrawing& picture, topo::NodeKind lower);

// All cables, tier by tier.                               fabric_cables.cc
std::string cables_svg(const FabricDrawing& picture);

// Heading; what the rows and the cables between them are, left of them; the legend, from `top` on,
// which adds its height to it.                             fabric_notes.cc
std::string heading_svg(const FabricDrawing& picture, Point corner);
std::string tier_notes_svg(const FabricDrawing& picture, double x);
std::string legend_svg(const FabricDrawing& picture, double right, Point& corner);

// The style of what belongs to a rail, with a space before it; none when there is one rail.
std::string rail_style(const FabricDrawing& picture, int rail);
std::string type_style(const FabricDrawing& picture, const std::string& type);

// Pixels: twice as fast is half as wide again.
double cable_width(const FabricDrawing& picture, BytesPerSecond rate);

// For element content and quoted attributes, also what XML cannot hold: control characters become
// '?'.
std::string xml_text(std::string_view text);

std::string line_svg(Point from, Point to, double width, std::string_view style,
                     std::string_view title);
std::string box_svg(const Box& box, std::string_view style, double radius);
std::string dot_svg(Point at, double radius, std::string_view style);

// Text on the baseline at `at`.
struct TextStyle {
  double size = 12;
  std::string_view style;
};
std::string text_svg(Point at, TextStyle look, std::string_view text);

}  // namespace regatta::report
