// report/internal/fabric_drawing.h: the input of the parts of a fabric's picture, and their shapes.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/app/report/internal/fabric_layout.h"
#include "regatta/app/report/internal/scale_up_servers.h"
#include "regatta/app/report/internal/svg.h"
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
  std::vector<DomainServers> domains;
  BytesPerSecond slowest;  // of all cables
};

FabricDrawing draw_fabric(const topo::Cluster& cluster, Point corner, double least_width);

// The number of cables from nodes of `lower` upwards that one line stands for.
std::size_t cables_of_line(const FabricDrawing& picture, topo::NodeKind lower);

// All cables, tier by tier.                               fabric_drawing_cables.cc
std::string cables_svg(const FabricDrawing& picture);

// The heading; the notes left of the rows and cables; the legend from `corner` on, which moves down
// by the height of the legend.                    fabric_drawing_notes.cc
std::string heading_svg(const FabricDrawing& picture, Point corner);
std::string tier_notes_svg(const FabricDrawing& picture, double x);
std::string legend_svg(const FabricDrawing& picture, double right, Point& corner);

// The style of the parts of a rail, with a leading space; empty when there is only one rail.
std::string rail_style(const FabricDrawing& picture, int rail);
std::string type_style(const FabricDrawing& picture, const std::string& type);

// Pixels: twice the rate is 1.5 times as wide.
double cable_width(const FabricDrawing& picture, BytesPerSecond rate);

std::string line_svg(Point from, Point to, double width, std::string_view style,
                     std::string_view title);
std::string box_svg(const Box& box, std::string_view style, double radius);
std::string dot_svg(Point at, double radius, std::string_view style);

// Text on the baseline at `at`.
struct TextStyle {
  double size = 12;  // pixels
  std::string_view name;
};
std::string text_svg(Point at, TextStyle style, std::string_view text);

}  // namespace regatta::report
