// fabric/routes.h: the paths of flows through the switches of a graph: shortest ones, of which each
// switch chooses among equally short next hops.
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

// The directions of a graph's links by number, as paths and routes give
// them. Pure.

// The number of a direction of a link in what links_of() gives: 2 link, and 1 from b to a.
inline std::uint32_t number_of(topo::DirectedLink link) {
  return 2 * static_cast<std::uint32_t>(link.link.value) + (link.forward ? 0 : 1);
}

// The direction that has this number.
inline topo::DirectedLink directed_link(std::uint32_t number) {
  return {LinkId{static_cast<int>(number / 2)}, number % 2 == 0};
}

// Where what is sent over a directed link comes from.
inline NodeId tail_of(const topo::Graph& graph, std::uint32_t link) {
  const topo::Link& cable = graph.links[link / 2];
  return link % 2 == 0 ? cable.a : cable.b;
}

// Where it comes to.
inline NodeId head_of(const topo::Graph& graph, std::uint32_t link) {
  return tail_of(graph, link ^ 1U);
}

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

// Reads routes that somebody wrote or took from switches
// (docs/formats/routes.md).

// The routes of `text`, a line each: a switch, the leaf that traffic goes to or "*" for all other
// leaves, and the links out of the switch that it takes. What no line says goes the shortest paths.
// `file` names the text in messages. Fails with kInvalidInput naming file, line and remedy.
Result<Routes> parse_routes(const topo::Graph& graph, std::string_view text,
                            const std::string& file);

// Routes that lead packets in a loop, so that they never arrive.

struct RouteLoop {
  NodeId leaf;                       // whose traffic it is
  std::vector<std::uint32_t> links;  // number_of(), each begins where the one before ends
};

// One that traffic between servers can come into; none: all of it arrives, or stops where a switch
// has no next hop.
std::optional<RouteLoop> find_loop(const topo::Graph& graph, const Routes& routes);

}  // namespace regatta::fabric
