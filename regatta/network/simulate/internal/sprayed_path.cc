#include "regatta/network/simulate/internal/sprayed_path.h"

#include <algorithm>
#include <span>
#include <utility>

namespace regatta::simulate {

SprayedPathFinder::SprayedPathFinder(const SimulatedNetwork& network)
    : network_(network),
      of_link_(2 * network.graph.links.size(), 0),
      at_node_(network.graph.nodes.size(), 0) {}

bool SprayedPathFinder::find(const fabric::Routes& routes, NodeId from, NodeId to,
                             SprayedPath& into) {
  into.links.clear();
  into.amounts.clear();
  into.latency = 0;
  nodes_ = {from};
  at_node_[from.index()] = 1;
  bool leads = true;
  while (leads && !nodes_.empty() && !(nodes_.size() == 1 && nodes_[0] == to))
    leads = step(routes, to, into);
  const double arriving = leads && !nodes_.empty() ? at_node_[to.index()] : 0;
  for (const NodeId node : nodes_)
    at_node_[node.index()] = 0;
  into.sent = arriving > 0 ? 1 / arriving : 0;
  for (const std::uint32_t link : into.links)
    into.amounts.push_back(std::exchange(of_link_[link], 0) * into.sent);
  return arriving > 0;
}

// All that is not there yet takes one hop.
bool SprayedPathFinder::step(const fabric::Routes& routes, NodeId to, SprayedPath& into) {
  next_.clear();
  double slowest = 0;
  bool leads = true;
  const auto arrive = [this](NodeId node, double share) {
    if (at_node_[node.index()] == 0) next_.push_back(node);
    at_node_[node.index()] += share;
  };
  for (const NodeId node : nodes_) {
    const double share = std::exchange(at_node_[node.index()], 0);
    if (node == to) {
      arrive(node, share);
      continue;
    }
    const std::span<const std::uint32_t> hops = routes.next_hops(node, to);
    leads = leads && !hops.empty();
    for (const std::uint32_t hop : hops) {
      if (is_dead(hop)) continue;
      const double part = share / static_cast<double>(hops.size());
      if (of_link_[hop] == 0) into.links.push_back(hop);
      of_link_[hop] += part;
      arrive(fabric::head_of(network_.graph, hop), part);
      slowest = std::max(slowest, network_.links.latency[hop]);
    }
  }
  into.latency += slowest;
  std::ranges::sort(next_);
  std::swap(nodes_, next_);
  return leads;
}

}  // namespace regatta::simulate
