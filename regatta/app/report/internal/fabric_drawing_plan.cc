#include "regatta/app/report/internal/fabric_drawing_plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace regatta::report {
namespace {

using topo::Cluster;
using topo::Graph;
using topo::NodeKind;

// The largest width at which a picture of each detail is readable on a screen.
constexpr double kWidestCables = 1500;
constexpr double kWidestRails = 2300;
constexpr double kWidestCompact = 3600;
constexpr double kWidestCounts = 2600;
constexpr std::size_t kMostCablesOfBlock = 16;
constexpr int kTallestStack = 20;  // servers below each other, where they can be split,
constexpr int kTallestBlock = 40;  // and where not; more only with kCompact
constexpr std::size_t kGroupsDrawn = 4;
constexpr std::size_t kSwitchesDrawn = 96;  // spines of all groups
constexpr std::size_t kSupersDrawn = 48;    // more are drawn as columns

constexpr double kSwitchPitch = 24;  // the narrowest

// Leaves are in the order of blocks, and of rails within a block.
FabricShape shape_of(const Cluster& cluster, const Graph& graph) {
  const int servers = static_cast<int>(cluster.servers.size());
  FabricShape shape;
  if (cluster.fabric.tiers == 0) {
    shape.groups.push_back({.blocks = {{0, servers, {}}}, .spines = {}});
    return shape;
  }
  const int per_block = cluster.fabric.servers_per_leaf;
  int leaves = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const topo::Node& node = graph.nodes[i];
    const NodeId id{static_cast<int>(i)};
    if (node.kind == NodeKind::kSuperSpine) shape.supers.push_back(id);
    if (node.group < 0) continue;
    shape.groups.resize(std::max(shape.groups.size(), as_index(node.group) + 1));
    GroupShape& group = at(shape.groups, node.group);
    if (node.kind == NodeKind::kSpine) group.spines.push_back(id);
    if (node.kind != NodeKind::kLeaf) continue;
    const int first = leaves / cluster.fabric.rails * per_block;
    if (leaves++ % cluster.fabric.rails == 0)
      group.blocks.push_back({first, std::min(per_block, servers - first), {}});
    group.blocks.back().leaves.push_back(id);
  }
  return shape;
}

int most_servers_of_block(const FabricDrawingPlan& draft) {
  int most = 0;
  for (const GroupShape& group : draft.shape.groups) {
    for (const BlockShape& block : group.blocks)
      most = std::max(most, block.servers);
  }
  return most;
}

bool is_readable(const FabricDrawingPlan& draft) {
  if (static_cast<int>(draft.cluster.servers.size()) > kServersDrawn) return false;
  const double width = fabric_width(draft);
  const int servers = most_servers_of_block(draft);
  if (draft.detail == FabricDetail::kCables) {
    const std::size_t cables = as_index(servers) * draft.columns.columns.size();
    return width <= kWidestCables && cables <= kMostCablesOfBlock;
  }
  if (draft.detail == FabricDetail::kRails)
    return width <= kWidestRails && draft.servers_of_stack <= kTallestBlock;
  return width <= kWidestCompact;
}

void set_detail(FabricDrawingPlan& draft, FabricDetail detail) {
  draft.detail = detail;
  draft.columns = nic_columns(draft.cluster, detail);
  draft.name_size = detail == FabricDetail::kCompact ? 9.5 : 12;
  draft.block_space = detail == FabricDetail::kCables ? 28 : 16;
  draft.name_width = 0;
  for (const topo::Server& server : draft.cluster.servers)
    draft.name_width = std::max(draft.name_width, text_width(server.name, draft.name_size));
  draft.name_width = std::min(draft.name_width, 14 * draft.name_size) + 8;
  const int servers = most_servers_of_block(draft);
  const bool splits = has_rails(detail) && draft.cluster.fabric.rails <= 1;
  draft.stacks = splits ? std::max(1, (servers + kTallestStack - 1) / kTallestStack) : 1;
  draft.servers_of_stack = (servers + draft.stacks - 1) / draft.stacks;
}

// Leaves out groups first, then blocks, until the counts fit.
void leave_out(FabricDrawingPlan& draft) {
  if (fabric_width(draft) <= kWidestCounts) return;
  draft.groups = std::min(draft.groups, kGroupsDrawn);
  const BlockShape& first = draft.shape.groups.front().blocks.front();
  const double each = block_width(draft, first) + draft.block_space;
  draft.blocks = std::max<std::size_t>(
      3, static_cast<std::size_t>(kWidestCounts / each) / std::max<std::size_t>(1, draft.groups));
}

void limit_switches(FabricDrawingPlan& draft) {
  draft.spines = std::max<std::size_t>(6, kSwitchesDrawn / std::max<std::size_t>(1, draft.groups));
  draft.supers = kSupersDrawn;
  if (draft.shape.supers.size() > kSupersDrawn)
    draft.supers_of_place = draft.cluster.fabric.super_spines / draft.cluster.fabric.spines;
}

}  // namespace

FabricDrawingPlan plan_fabric_drawing(const Cluster& cluster, const Graph& graph) {
  FabricDrawingPlan draft{.cluster = cluster,
                          .graph = graph,
                          .shape = shape_of(cluster, graph),
                          .columns = {},
                          .longest_names = {}};
  draft.groups = draft.shape.groups.size();
  for (const GroupShape& group : draft.shape.groups)
    draft.blocks = std::max(draft.blocks, group.blocks.size());
  for (const topo::Node& node : graph.nodes) {
    std::string& longest = draft.longest_names[node.kind];
    if (node.name.size() > longest.size()) longest = node.name;
  }
  limit_switches(draft);
  for (const FabricDetail detail :
       {FabricDetail::kCables, FabricDetail::kRails, FabricDetail::kCompact}) {
    set_detail(draft, detail);
    if (is_readable(draft)) return draft;
  }
  set_detail(draft, FabricDetail::kCounts);
  leave_out(draft);
  limit_switches(draft);
  return draft;
}

bool has_rails(FabricDetail detail) {
  return detail == FabricDetail::kRails || detail == FabricDetail::kCompact;
}

std::string longest_name(const FabricDrawingPlan& draft, NodeKind kind) {
  const auto found = draft.longest_names.find(kind);
  return found == draft.longest_names.end() ? "" : found->second;
}

double card_width(const FabricDrawingPlan& draft) {
  switch (draft.detail) {
    case FabricDetail::kCables:
      return std::max({draft.columns.width + 12, draft.name_width + 14, 64.0});
    case FabricDetail::kRails:
    case FabricDetail::kCompact:
      return draft.name_width + draft.columns.width + 10;
    case FabricDetail::kCounts:
      break;
  }
  const std::string leaf = longest_name(draft, NodeKind::kLeaf);
  const double number = text_width(leaf, 10) - text_width("leaf", 10) + 8;
  return std::max(132.0, draft.cluster.fabric.rails * std::max(number, 18.0));
}

double block_width(const FabricDrawingPlan& draft, const BlockShape& block) {
  if (draft.detail != FabricDetail::kCables)
    return draft.stacks * (card_width(draft) + kFramePad) + kFramePad;
  const double servers = block.servers * (card_width(draft) + kCardSpace) - kCardSpace;
  const double leaves = static_cast<double>(block.leaves.size()) * 74 - 10;
  return std::max(servers, leaves) + 2 * kFramePad;
}

double blocks_width(const FabricDrawingPlan& draft, const GroupShape& group) {
  double width = -draft.block_space;
  for (const VisibleItem& shown : visible_items(group.blocks.size(), draft.blocks)) {
    width += shown.skipped > 0 ? kGapWidth : block_width(draft, group.blocks[shown.index]);
    width += draft.block_space;
  }
  return width;
}

double group_width(const FabricDrawingPlan& draft, const GroupShape& group) {
  const std::size_t spines = visible_items(group.spines.size(), draft.spines).size();
  const double pad = draft.shape.supers.empty() ? 0 : 2 * kGroupPad;
  return std::max(blocks_width(draft, group), static_cast<double>(spines) * kSwitchPitch) + pad;
}

double groups_width(const FabricDrawingPlan& draft) {
  double width = -kGroupSpace;
  for (const VisibleItem& shown : visible_items(draft.shape.groups.size(), draft.groups)) {
    width += shown.skipped > 0 ? kGapWidth : group_width(draft, draft.shape.groups[shown.index]);
    width += kGroupSpace;
  }
  return width;
}

double fabric_width(const FabricDrawingPlan& draft) {
  const std::size_t places = draft.shape.supers.size() / as_index(draft.supers_of_place);
  const std::size_t supers = visible_items(places, draft.supers).size();
  return std::max(groups_width(draft), static_cast<double>(supers) * kSwitchPitch);
}

double text_width(std::string_view text, double size) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // not the rest of a UTF-8 letter
  });
  return 0.61 * size * static_cast<double>(letters);
}

std::string fit_text(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  const auto is_rest = [&text](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;
  };
  while (!text.empty() && text_width(text, size) + text_width("...", size) > width) {
    std::size_t end = text.size() - 1;
    while (end > 0 && is_rest(end))
      --end;
    text = text.substr(0, end);
  }
  return std::string(text) + "...";
}

std::vector<VisibleItem> visible_items(std::size_t count, std::size_t most) {
  std::vector<VisibleItem> all;
  const bool leaves_out = count > most;
  const std::size_t first = leaves_out ? most - 2 : count;
  for (std::size_t i = 0; i < first; ++i)
    all.push_back({i, 0});
  if (!leaves_out) return all;
  all.push_back({first, count - first - 1});
  all.push_back({count - 1, 0});
  return all;
}

}  // namespace regatta::report
