// fabric/internal/failed_components.h: the currently failed links and switches of a graph. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {

class FailedComponents {
 public:
  explicit FailedComponents(const topo::Graph& graph)
      : graph_(graph), is_failed_(graph.links.size(), false), is_gone_(graph.nodes.size(), false) {}

  // true: they fail; false: they work again.
  void mark(const FailureSet& failed, bool value) {
    for (const LinkId link : failed.links)
      is_failed_[link.index()] = value;
    for (const NodeId node : failed.switches)
      is_gone_[node.index()] = value;
  }

  // Whether a next hop (a directed link) or the switch that it leads to has failed.
  bool is_dead(std::uint32_t hop) const {
    return is_failed_[hop / 2] || is_gone(head_of(graph_, hop));
  }
  // Whether a switch has failed.
  bool is_gone(NodeId node) const { return is_gone_[node.index()]; }

 private:
  const topo::Graph& graph_;
  std::vector<bool> is_failed_;  // per link
  std::vector<bool> is_gone_;    // per node
};

}  // namespace regatta::fabric
