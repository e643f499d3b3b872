// fabric/internal/failed_components.h: which links and switches of a graph have failed at the
// moment. Pure.
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

  // `value`: they fail; else they work again.
  void mark(const FailureSet& failed, bool value) {
    for (const LinkId link : failed.links)
      is_failed_[link.index()] = value;
    for (const NodeId node : failed.switches)
      is_gone_[node.index()] = value;
  }

  // A next hop, a link with its direction: it failed, or the switch that it leads to.
  bool is_dead(std::uint32_t hop) const {
    return is_failed_[hop / 2] || is_gone(head_of(graph_, hop));
  }
  // A switch that failed.
  bool is_gone(NodeId node) const { return is_gone_[node.index()]; }

 private:
  const topo::Graph& graph_;
  std::vector<bool> is_failed_;  // per link
  std::vector<bool> is_gone_;    // per node
};

}  // namespace regatta::fabric
