// report/internal/fabric_drawing_plan.h: the decisions before a fabric is laid out: its blocks and
// groups, the level of detail, the parts that are left out, and the width.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/app/report/internal/fabric_layout.h"
#include "regatta/app/report/internal/fabric_server.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"

namespace regatta::report {

struct BlockShape {
  int first_server = 0;
  int servers = 0;
  std::vector<NodeId> leaves;
};

struct GroupShape {
  std::vector<BlockShape> blocks;
  std::vector<NodeId> spines;
};

struct FabricShape {
  std::vector<GroupShape> groups;
  std::vector<NodeId> supers;
};

struct FabricDrawingPlan {
  const topo::Cluster& cluster;
  const topo::Graph& graph;
  FabricShape shape;
  FabricDetail detail = FabricDetail::kCables;
  NicColumns columns;
  double name_size = 12;
  double name_width = 0;     // room for a server's name
  double block_space = 0;    // between blocks
  int stacks = 1;            // of servers, beside each other in a block,
  int servers_of_stack = 0;  // each so high; blocks of several rails have one
  std::size_t blocks = 0;    // places for blocks in a group,
  std::size_t spines = 0;    // spines in a group,
  std::size_t groups = 0;    // groups,
  std::size_t supers = 0;    // and super-spines, or their columns
  int supers_of_place = 1;   // more: a place stands for a column
  std::map<topo::NodeKind, std::string> longest_names;
};

FabricDrawingPlan plan_fabric_drawing(const topo::Cluster& cluster, const topo::Graph& graph);

// Widths of a server's card, of a block with its frame, of all blocks of a group, of a group with
// its frame and of the whole fabric, without extra space.
double card_width(const FabricDrawingPlan& draft);
double block_width(const FabricDrawingPlan& draft, const BlockShape& block);
double blocks_width(const FabricDrawingPlan& draft, const GroupShape& group);
double group_width(const FabricDrawingPlan& draft, const GroupShape& group);
double groups_width(const FabricDrawingPlan& draft);
double fabric_width(const FabricDrawingPlan& draft);

// The longest name of the nodes of a kind; "" when there is none.
std::string longest_name(const FabricDrawingPlan& draft, topo::NodeKind kind);

// kRails or kCompact.
bool has_rails(FabricDetail detail);

// Distances between the parts of the picture, in pixels.
inline constexpr double kGapWidth = 92;  // of a gap for blocks or groups left out
inline constexpr double kFramePad = 8;   // inside the frame of a block
inline constexpr double kGroupPad = 12;  // inside the frame of a group
inline constexpr double kGroupSpace = 26;
inline constexpr double kCardSpace = 12;

// Shows `count` items in at most `most` (3 or more) places: all, or the first ones, a gap, and the
// last.
struct VisibleItem {
  std::size_t index = 0;
  std::size_t skipped = 0;  // > 0: a gap instead, for items index .. index + skipped - 1
};
std::vector<VisibleItem> visible_items(std::size_t count, std::size_t most);

// A generous estimate of how wide `text` is in the picture's font of `size` pixels.
double text_width(std::string_view text, double size);

// `text` cut to `width`; what is cut ends with "...".
std::string fit_text(std::string_view text, double size, double width);

}  // namespace regatta::report
