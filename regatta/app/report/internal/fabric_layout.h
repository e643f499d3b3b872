// report/internal/fabric_layout.h: positions of the parts of a fabric in its picture: tiers in
// rows, servers under their leaves, in as much detail as is readable.
#pragma once

#include <string>
#include <vector>

#include "regatta/app/report/internal/svg.h"
#include "regatta/base/core/ids.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"

namespace regatta::report {

// How the servers under a set of leaves are drawn, richest first.
enum class FabricDetail {
  kCables,   // a card for each server, a line for each cable of a NIC
  kRails,    // servers stacked; one line from a leaf meets the NICs that are cabled to it
  kCompact,  // the same, smaller
  kCounts,   // one card says how many servers there are
};

struct SwitchPlace {
  NodeId node;
  Box box;
  std::string label;  // the name, its number, or nothing, as fits into the box
  int count = 1;      // more for a column of super-spines: node, node + 1, ...
};

struct NicPlace {
  int nic = 0;
  int rail = 0;
  Point at;
};

struct ServerPlace {
  ServerId first;
  int count = 1;  // more with kCounts only: the servers first, first + 1, ...
  Box card;
  std::string label;
  std::vector<Box> devices;
  std::vector<NicPlace> nics;
};

// Servers that share their leaves, one leaf for each rail.
struct BlockPlace {
  Box frame;
  std::vector<SwitchPlace> leaves;
  std::vector<ServerPlace> servers;
};

struct GroupPlace {
  int group = 0;
  Box frame;
  std::vector<BlockPlace> blocks;
  std::vector<SwitchPlace> spines;
};

// A place for parts that are left out: "26 blocks", "416 servers".
struct GapPlace {
  Box box;
  std::vector<std::string> lines;
};

struct FabricLayout {
  FabricDetail detail = FabricDetail::kCables;
  Box area;  // around everything below
  std::vector<GroupPlace> groups;
  std::vector<SwitchPlace> supers;
  std::vector<GapPlace> gaps;
  double switch_height = 0;
  double supers_y = 0;  // tops of the rows; undefined for absent tiers
  double spines_y = 0;
  double leaves_y = 0;
  double servers_y = 0;
};

// A larger number of servers is counted instead of drawn.
inline constexpr int kServersDrawn = 128;

// Lays out `cluster` with its `graph`: the top left corner at `corner`, at least `least_width`
// wide.
FabricLayout lay_out_fabric(const topo::Cluster& cluster, const topo::Graph& graph, Point corner,
                            double least_width);

}  // namespace regatta::report
