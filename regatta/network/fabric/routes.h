// fabric/routes.h: the paths of flows through the switches of a graph: shortest ones, of which each
// switch chooses among equally short next hops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/directed_links.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// Both directions of every link of the graph.
Links links_of(const topo::Graph& graph);

// Of the switches of a graph whose servers all hang on leaves.
class Routes {
 public:
  explicit Routes(const topo::Graph& graph);

  // The directed links on which `node`, a switch, may send what goes to a server of `leaf`; empty
  // at the leaf itself, and where no path leads there.
  std::span<const std::uint32_t> next_hops(NodeId node, NodeId leaf) const;

  // The switches that servers hang on.
  const std::vector<NodeId>& leaves() const { return leaves_; }
  // Other next hops than the shortest, as a route that somebody wrote: links of `node`.
  void set_next_hops(NodeId node, NodeId leaf, std::span<const std::uint32_t> hops);

  // The path from one NIC to another, each given by its link (topo::nic_link()): up and down the
  // switches, at each one the next hop that choose(node, hops) says, where there are several.
  // Empty: they are the same. None: no path leads there.
  template <typename Choose>
  std::optional<std::vector<std::uint32_t>> path(LinkId from, LinkId to, Choose&& choose) const {
    std::vector<std::uint32_t> links;
    if (from == to) return links;
    links.push_back(number_of({from, true}));
    const NodeId last = switch_of_[to.index()];
    for (NodeId node = switch_of_[from.index()]; node != last;) {
      const std::span<const std::uint32_t> hops = next_hops(node, last);
      if (hops.empty()) return std::nullopt;
      const std::size_t chosen = hops.size() == 1 ? 0 : choose(node, hops.size());
      links.push_back(hops[chosen]);
      node = end_of_[hops[chosen]];
    }
    links.push_back(number_of({to, false}));
    return links;
  }

 private:
  std::vector<NodeId> switch_of_;  // per link of a NIC
  std::vector<NodeId> end_of_;     // per directed link: where it leads
  // Many (switch, leaf) have the same next hops: sets, by number.
  std::vector<int> number_of_leaf_;  // per node; -1: no leaf
  std::vector<NodeId> leaves_;
  std::vector<std::uint32_t> set_of_;  // per node and leaf
  std::vector<std::uint32_t> first_of_set_ = {0};
  std::vector<std::uint32_t> hops_;
};

// The next hops that a fat tree's switches take by the number of the destination, so that paths to
// different servers of a leaf stay apart until the last switch (D-mod-k: Zahavi, "Fat-tree routing
// and node ordering providing contention free traffic for MPI global collectives", 2012).
class DModKNextHop {
 public:
  explicit DModKNextHop(const topo::Graph& graph);

  // For Routes::path() to the server whose place among those of its leaf is `place`: leaves choose
  // by it, spines by what leaves leave of it.
  auto to(std::size_t place) const {
    return [this, place](NodeId node, std::size_t hops) {
      return place / divisor_[node.index()] % hops;
    };
  }

 private:
  std::vector<std::size_t> divisor_;  // per node
};

}  // namespace regatta::fabric
