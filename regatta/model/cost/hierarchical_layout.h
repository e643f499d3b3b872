// cost/hierarchical_layout.h: the layout of an all_reduce of a long vector over servers: the ranks
// that work together, and the share of each server. comm runs it and plan predicts it, both from
// here.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::cost {

// The locations of the ranks of a group, by rank.
struct RankLocations {
  std::vector<int> server;           // the same number: the same server, or scale-up domain
  std::vector<BytesPerSecond> rate;  // of the rank's network link, one way; 0: not known
};

// The ranks as rows (servers, in the order of their first rank) of equal length.
struct HierarchicalLayout {
  std::vector<std::vector<int>> servers;
  std::vector<double> weights;  // by server: its share of the work between servers; the sum is 1
  bool is_ring = true;          // between servers; else direct

  int ranks_per_server() const { return static_cast<int>(servers.front().size()); }
};

// The ranks of each server, in the order of its first rank.
std::vector<std::vector<int>> ranks_by_server(const RankLocations& sites);

// The layout for a long vector; nothing when one ring is best: the ranks are on one server, their
// numbers per server differ, or each is alone on its server and all links are equal.
std::optional<HierarchicalLayout> plan_hierarchical_layout(const RankLocations& sites);

// The shares that let the slowest link end first in a direct exchange: minimises the largest of
// (1 + (N-2) w) / rate over N >= 3 servers.
std::vector<double> balanced_link_shares(const std::vector<BytesPerSecond>& rates);

// The lower bound of an all_reduce of `bytes`: the time of the slowest link, one way, when the work
// is shared out best; 0 where all ranks lie on one server. All rates are known. The rate of a
// server is that of its first rank.
Seconds all_reduce_bound(Bytes bytes, const RankLocations& sites);

// The share of an all_reduce of 1 byte that one rank sends to another.
struct HierarchicalFlow {
  int from = 0;  // ranks
  int to = 0;
  double bytes = 0;
};
// Every flow of all ranks, as collective/internal/hierarchical.h sends.
std::vector<HierarchicalFlow> hierarchical_flows(const HierarchicalLayout& grid);
// Latencies one after the other.
int hierarchical_steps(const HierarchicalLayout& grid);

}  // namespace regatta::cost
