// fabric/routes.h: the shortest paths of flows through the switches of a graph: each switch chooses
// among equal-cost next hops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// Numbers of directed links, as in paths and routes.

// The index of a directed link in links_of(): 2 link, plus 1 from b to a.
inline std::uint32_t number_of(topo::DirectedLink link) {
  return 2 * static_cast<std::uint32_t>(link.link.value) + (link.forward ? 0 : 1);
}

// The direction that has this number.
inline topo::DirectedLink directed_link(std::uint32_t number) {
  return {LinkId{static_cast<int>(number / 2)}, number % 2 == 0};
}

// The node that sends over a directed link.
inline NodeId tail_of(const topo::Graph& graph, std::uint32_t link) {
  const topo::Link& cable = graph.links[link / 2];
  return link % 2 == 0 ? cable.a : cable.b;
}

// The node at which it arrives.
inline NodeId head_of(const topo::Graph& graph, std::uint32_t link) {
  return tail_of(graph, link ^ 1U);
}

// Both directions of every link of the graph.
Links links_of(const topo::Graph& graph);

// The routes of all switches of a graph in which servers attach only to leaves.
class Routes {
 public:
  explicit Routes(const topo::Graph& graph);

  // The directed links on which the switch `node` may send traffic to servers of `leaf`; empty at
  // the leaf itself, and without a path.
  std::span<const std::uint32_t> next_hops(NodeId node, NodeId leaf) const;

  // The switches that servers attach to.
  const std::vector<NodeId>& leaves() const { return leaves_; }
  // Replaces the shortest next hops by an explicit route: links of `node`.
  void set_next_hops(NodeId node, NodeId leaf, std::span<const std::uint32_t> hops);

  // The path from one NIC to another, each given by its link (topo::nic_link()); choose(node, hops)
  // returns the index of the next hop where a switch has several. Empty: the NICs are the same.
  // None: there is no path.
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
  // Many (switch, leaf) share next hops, which are stored as numbered sets.
  std::vector<int> number_of_leaf_;  // per node; -1: no leaf
  std::vector<NodeId> leaves_;
  std::vector<std::uint32_t> set_of_;  // per node and leaf
  std::vector<std::uint32_t> first_of_set_ = {0};
  std::vector<std::uint32_t> hops_;
};

// D-mod-k: the switches of a fat tree choose next hops by the number of the destination, so that
// paths to different servers of a leaf stay apart until the last switch (Zahavi, "Fat-tree routing
// and node ordering providing contention free traffic for MPI global collectives", 2012).
class DModKNextHop {
 public:
  explicit DModKNextHop(const topo::Graph& graph);

  // For Routes::path() to server number `place` of its leaf: leaves choose by `place` modulo their
  // hops, spines by the quotient.
  auto to(std::size_t place) const {
    return [this, place](NodeId node, std::size_t hops) {
      return place / divisor_[node.index()] % hops;
    };
  }

 private:
  std::vector<std::size_t> divisor_;  // per node
};

// The routes of `text` (docs/formats/routes.md), a line each: a switch, the destination leaf or "*"
// for all other leaves, and the links out of the switch. Traffic without a line takes the shortest
// paths. `file` names the text in messages. Fails with kInvalidInput naming file, line and remedy.
Result<Routes> parse_routes(const topo::Graph& graph, std::string_view text,
                            const std::string& file);

// A routing loop: its packets never arrive.
struct RouteLoop {
  NodeId leaf;                       // the destination of the traffic
  std::vector<std::uint32_t> links;  // number_of(), each begins where the one before ends
};

// A loop that traffic between servers can enter; none: all traffic arrives, or stops where a switch
// has no next hop.
std::optional<RouteLoop> find_loop(const topo::Graph& graph, const Routes& routes);

}  // namespace regatta::fabric
