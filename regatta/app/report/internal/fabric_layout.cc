#include "regatta/app/report/internal/fabric_layout.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/fabric_drawing_plan.h"
#include "regatta/app/report/internal/fabric_server.h"

namespace regatta::report {
namespace {

constexpr double kWidestSwitch = 84;
constexpr double kCountsHeight = 58;  // of a card that counts servers
constexpr double kMostAir = 90;       // between blocks, where there is room

// The same form for all switches of a kind: the name when all fit, else the number, else nothing.
std::string switch_label(const FabricDrawingPlan& draft, const topo::Node& node, double width) {
  const std::string longest = longest_name(draft, node.kind);
  if (text_width(longest, 12) <= width - 4) return node.name;
  const std::size_t digits = longest.find_first_of("0123456789");
  const bool fits = text_width(longest.substr(digits), 10) <= width - 1;
  return fits ? node.name.substr(digits) : "";
}

SwitchPlace place_switch(const FabricDrawingPlan& draft, NodeId node, Box box) {
  return {node, box, switch_label(draft, draft.graph.nodes[node.index()], box.width)};
}

// Spreads `nodes` evenly over `row`; a gap of two places stands for the nodes left out.
std::vector<SwitchPlace> place_row(const FabricDrawingPlan& draft, const std::vector<NodeId>& nodes,
                                   std::size_t most, Box row, std::vector<GapPlace>& gaps) {
  std::vector<SwitchPlace> places;
  const std::vector<VisibleItem> all = visible_items(nodes.size(), most);
  if (all.empty()) return places;
  const std::size_t slots = all.size() + (nodes.size() > most ? 1 : 0);
  const double pitch = row.width / static_cast<double>(slots);
  const double width = std::min(kWidestSwitch, pitch - 4);
  double x = row.x + (pitch - width) / 2;
  for (const VisibleItem& shown : all) {
    if (shown.skipped > 0) {
      gaps.push_back({{x, row.y, width + pitch, row.height}, {fmt::format("+{}", shown.skipped)}});
      x += 2 * pitch;
      continue;
    }
    places.push_back(place_switch(draft, nodes[shown.index], {x, row.y, width, row.height}));
    x += pitch;
  }
  return places;
}

ServerPlace place_server(const FabricDrawingPlan& draft, int server, Box card) {
  const topo::ServerType& type = draft.cluster.type_of(ServerId{server});
  const std::string& name = at(draft.cluster.servers, server).name;
  ServerPlace place{
      .first = ServerId{server}, .card = card, .label = {}, .devices = {}, .nics = {}};
  if (has_rails(draft.detail)) {
    const double top = card.y + (card.height - draft.columns.devices_height()) / 2;
    place.label = fit_text(name, draft.name_size, draft.name_width - 6);
    place_parts(draft.columns, type, {card.x + draft.name_width + 4, top}, card.y + card.height / 2,
                place);
  } else {
    place.label = fit_text(name, draft.name_size, card.width - 8);
    place_parts(draft.columns, type, {card.middle() - draft.columns.width / 2 + 1, card.y + 11},
                card.y, place);
  }
  return place;
}

// Cards side by side, leaves spread over them.
BlockPlace place_cables(const FabricDrawingPlan& draft, const BlockShape& shape, Box frame,
                        const FabricLayout& rows) {
  BlockPlace block{.frame = frame, .leaves = {}, .servers = {}};
  std::vector<GapPlace> none;
  block.leaves = place_row(draft, shape.leaves, shape.leaves.size(),
                           {frame.x, rows.leaves_y, frame.width, rows.switch_height}, none);
  const double width = card_width(draft);
  double x = frame.middle() - (shape.servers * (width + kCardSpace) - kCardSpace) / 2;
  for (int i = 0; i < shape.servers; ++i) {
    block.servers.push_back(
        place_server(draft, shape.first_server + i,
                     {x, rows.servers_y, width, draft.columns.devices_height() + 36}));
    x += width + kCardSpace;
  }
  return block;
}

// The x and width of the leaf of `rail` above its columns. A leaf that keeps its width stands above
// the middle of the rail's lines.
Box rail_span(const NicColumns& plan, int rail) {
  std::vector<NicColumn> columns;
  for (const NicColumn& column : plan.columns) {
    if (column.rail == rail) columns.push_back(column);
  }
  const double left = columns.front().x;
  const double right = columns.back().x + columns.back().width;
  const double middle = (columns.front().nic_x + columns.back().nic_x) / 2;
  const double overhang = right - columns.back().nic_x;
  const double centred = 2 * std::min(middle - left, right + overhang - middle);
  if (centred < 0.9 * (right - left)) return {left, 0, right - left - 2, 0};
  const double width = std::min(centred, right - left) - 2;
  return {middle - width / 2, 0, width, 0};
}

// The columns of a rail lie under its leaf; a leaf of several stacks reaches over all of them.
BlockPlace place_rails(const FabricDrawingPlan& draft, const BlockShape& shape, Box frame,
                       const FabricLayout& rows) {
  BlockPlace block{.frame = frame, .leaves = {}, .servers = {}};
  const double left = frame.x + kFramePad;
  const double columns = left + draft.name_width + 4;
  const double pitch = card_width(draft) + kFramePad;
  for (std::size_t rail = 0; rail < shape.leaves.size(); ++rail) {
    const Box span = rail_span(draft.columns, static_cast<int>(rail));
    block.leaves.push_back(
        place_switch(draft, shape.leaves[rail],
                     {columns + span.x, rows.leaves_y, span.width + (draft.stacks - 1) * pitch,
                      rows.switch_height}));
  }
  const double height = draft.columns.devices_height() + 10;
  for (int i = 0; i < shape.servers; ++i) {
    const int stack = i / draft.servers_of_stack;
    const int row = i - stack * draft.servers_of_stack;
    block.servers.push_back(place_server(
        draft, shape.first_server + i,
        {left + pitch * stack, rows.servers_y + (height + 4) * row, pitch - kFramePad, height}));
  }
  return block;
}

std::string name_range(const std::string& first, const std::string& last) {
  return first == last ? first : first + " to " + last;
}

// One card for all servers of the block.
BlockPlace place_counts(const FabricDrawingPlan& draft, const BlockShape& shape, Box frame,
                        const FabricLayout& rows) {
  BlockPlace block{.frame = frame, .leaves = {}, .servers = {}};
  std::vector<GapPlace> none;
  const Box inner{frame.x + kFramePad, rows.leaves_y, frame.width - 2 * kFramePad,
                  rows.switch_height};
  block.leaves = place_row(draft, shape.leaves, shape.leaves.size(), inner, none);
  const auto name = [&draft](int server) { return at(draft.cluster.servers, server).name; };
  block.servers.push_back(
      {.first = ServerId{shape.first_server},
       .count = shape.servers,
       .card = {inner.x, rows.servers_y, inner.width, kCountsHeight},
       .label = fit_text(
           name_range(name(shape.first_server), name(shape.first_server + shape.servers - 1)), 11,
           inner.width - 8),
       .devices = {},
       .nics = {}});
  return block;
}

BlockPlace place_block(const FabricDrawingPlan& draft, const BlockShape& shape, double x,
                       const FabricLayout& rows) {
  const double top = (shape.leaves.empty() ? rows.servers_y : rows.leaves_y) - kFramePad;
  const Box frame{x, top, block_width(draft, shape), 0};
  BlockPlace block = draft.detail == FabricDetail::kCables ? place_cables(draft, shape, frame, rows)
                     : draft.detail == FabricDetail::kCounts
                         ? place_counts(draft, shape, frame, rows)
                         : place_rails(draft, shape, frame, rows);
  for (const ServerPlace& server : block.servers)
    block.frame.height = std::max(block.frame.height, server.card.bottom() + kFramePad - top);
  return block;
}

// Where a group starts, and the space between its blocks.
struct Cursor {
  double x = 0;
  double space = 0;
};

std::size_t servers_of(const GroupShape& shape) {
  std::size_t servers = 0;
  for (const BlockShape& block : shape.blocks)
    servers += as_index(block.servers);
  return servers;
}

GapPlace blocks_left_out(const GroupShape& shape, const VisibleItem& gap, double x,
                         const FabricLayout& rows) {
  std::size_t servers = 0;
  for (std::size_t i = 0; i < gap.skipped; ++i)
    servers += as_index(shape.blocks[gap.index + i].servers);
  const double top = rows.leaves_y - kFramePad;
  return {{x, top, kGapWidth, rows.servers_y + kCountsHeight + kFramePad - top},
          {pluralized(gap.skipped, "block", "blocks"), pluralized(servers, "server", "servers")}};
}

GroupPlace place_group(const FabricDrawingPlan& draft, const GroupShape& shape, Cursor at,
                       FabricLayout& layout) {
  GroupPlace group;
  const std::vector<VisibleItem> blocks = visible_items(shape.blocks.size(), draft.blocks);
  const double pad = draft.shape.supers.empty() ? 0 : kGroupPad;
  const double stretch = (at.space - draft.block_space) * static_cast<double>(blocks.size() - 1);
  const double inner = group_width(draft, shape) - 2 * pad + stretch;
  double x = at.x + pad + (inner - blocks_width(draft, shape) - stretch) / 2;
  double bottom = layout.servers_y;
  for (const VisibleItem& shown : blocks) {
    if (shown.skipped > 0) {
      layout.gaps.push_back(blocks_left_out(shape, shown, x, layout));
      x += kGapWidth + at.space;
      continue;
    }
    group.blocks.push_back(place_block(draft, shape.blocks[shown.index], x, layout));
    x = group.blocks.back().frame.right() + at.space;
    bottom = std::max(bottom, group.blocks.back().frame.bottom());
  }
  group.spines = place_row(draft, shape.spines, draft.spines,
                           {at.x + pad, layout.spines_y, inner, layout.switch_height}, layout.gaps);
  group.frame = {at.x, layout.spines_y - kGroupPad, inner + 2 * pad, 0};
  group.frame.height = bottom + pad - group.frame.y;
  return group;
}

// From `x` on; returns how far down the groups reach.
double place_groups(const FabricDrawingPlan& draft, Cursor at, FabricLayout& layout) {
  double bottom = layout.servers_y;
  for (const VisibleItem& shown : visible_items(draft.shape.groups.size(), draft.groups)) {
    if (shown.skipped > 0) {
      const double top = layout.spines_y - kGroupPad;
      std::size_t servers = 0;
      for (std::size_t i = 0; i < shown.skipped; ++i)
        servers += servers_of(draft.shape.groups[shown.index + i]);
      layout.gaps.push_back(
          {{at.x, top, kGapWidth, layout.servers_y + kCountsHeight + kFramePad + kGroupPad - top},
           {pluralized(shown.skipped, "group", "groups"),
            pluralized(servers, "server", "servers")}});
      at.x += kGapWidth + kGroupSpace;
      continue;
    }
    layout.groups.push_back(place_group(draft, draft.shape.groups[shown.index], at, layout));
    layout.groups.back().group = static_cast<int>(shown.index);
    at.x = layout.groups.back().frame.right() + kGroupSpace;
    bottom = std::max(bottom, layout.groups.back().frame.bottom());
  }
  return bottom;
}

void place_supers(const FabricDrawingPlan& draft, Box row, FabricLayout& layout) {
  const int each = draft.supers_of_place;
  std::vector<NodeId> first;
  for (std::size_t i = 0; i < draft.shape.supers.size(); i += as_index(each))
    first.push_back(draft.shape.supers[i]);
  layout.supers = place_row(draft, first, draft.supers, row, layout.gaps);
  if (each == 1) return;
  for (SwitchPlace& place : layout.supers) {
    place.count = each;
    const std::string name =
        fmt::format("column {}", (place.node.value - first.front().value) / each);
    place.label = text_width(name, 12) <= place.box.width - 4 ? name : "";
  }
}

// The tops of the rows: wide pictures need taller gaps, or the cables lie flat.
void set_rows(const FabricDrawingPlan& draft, double top, double width, FabricLayout& layout) {
  const double between = std::clamp(0.11 * width, 104.0, 220.0);
  layout.switch_height = draft.detail == FabricDetail::kCompact ? 22 : 28;
  layout.supers_y = top;
  layout.spines_y = top;
  if (!draft.shape.supers.empty()) layout.spines_y += layout.switch_height + between;
  layout.leaves_y = layout.spines_y;
  if (draft.cluster.fabric.tiers >= 2) layout.leaves_y += layout.switch_height + between;
  layout.servers_y = layout.leaves_y;
  if (draft.cluster.fabric.tiers == 0) return;
  const bool fan = draft.detail == FabricDetail::kCables;
  layout.servers_y += layout.switch_height + (fan ? 86 : has_rails(draft.detail) ? 14 : 22);
}

}  // namespace

FabricLayout lay_out_fabric(const topo::Cluster& cluster, const topo::Graph& graph, Point corner,
                            double least_width) {
  const FabricDrawingPlan draft = plan_fabric_drawing(cluster, graph);
  FabricLayout layout{.detail = draft.detail, .area = {}, .groups = {}, .supers = {}, .gaps = {}};
  const double width = std::max(fabric_width(draft), least_width);
  set_rows(draft, corner.y, width, layout);
  const double room = width - groups_width(draft);
  const auto spaces = static_cast<double>(draft.blocks) - 1;
  // Several groups keep their blocks together.
  const double air = draft.groups > 1 || spaces < 1 ? 0 : std::min(room / (spaces + 1), kMostAir);
  const double left = (room - air * spaces) / 2;
  const double bottom = place_groups(draft, {corner.x + left, draft.block_space + air}, layout);
  place_supers(draft, {corner.x, layout.supers_y, width, layout.switch_height}, layout);
  layout.area = {corner.x, corner.y, width, bottom - corner.y};
  return layout;
}

}  // namespace regatta::report
