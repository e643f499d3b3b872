#include "regatta/fabric/routes.h"

#include <deque>
#include <limits>
#include <map>

#include "regatta/core/check.h"

namespace regatta::fabric {
namespace {

constexpr int kFar = std::numeric_limits<int>::max();

// Hops from each switch to `leaf`; servers do not forward.
std::vector<int> distances_to(const topo::Graph& graph, NodeId leaf) {
  std::vector<int> distance(graph.nodes.size(), kFar);
  std::deque<NodeId> open{leaf};
  distance[leaf.index()] = 0;
  while (!open.empty()) {
    const NodeId node = open.front();
    open.pop_front();
    for (const LinkId id : graph.links_of[node.index()]) {
      const topo::Link& link = graph.links[id.index()];
      const NodeId next = link.a == node ? link.b : link.a;
      if (link.a_nic >= 0 || distance[next.index()] != kFar) continue;
      distance[next.index()] = distance[node.index()] + 1;
      open.push_back(next);
    }
  }
  return distance;
}

}  // namespace

Links links_of(const topo::Graph& graph) {
  Links links;
  for (const topo::Link& link : graph.links) {
    links.add(link.rate, link.latency);
    links.add(link.rate, link.latency);
  }
  return links;
}

Routes::Routes(const topo::Graph& graph) : number_of_leaf_(graph.nodes.size(), -1) {
  std::vector<NodeId> leaves;
  for (const topo::Link& link : graph.links) {
    switch_of_.push_back(link.a_nic >= 0 ? link.b : NodeId());
    end_of_.push_back(link.b);
    end_of_.push_back(link.a);
    if (link.a_nic < 0 || number_of_leaf_[link.b.index()] >= 0) continue;
    number_of_leaf_[link.b.index()] = static_cast<int>(leaves.size());
    leaves.push_back(link.b);
  }
  leaves_ = leaves.size();
  set_of_.resize(graph.nodes.size() * leaves_);
  std::map<std::vector<std::uint32_t>, std::uint32_t> sets;
  std::vector<std::uint32_t> hops;
  for (std::size_t leaf = 0; leaf < leaves_; ++leaf) {
    const std::vector<int> distance = distances_to(graph, leaves[leaf]);
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
      hops.clear();
      for (const LinkId id : graph.links_of[node]) {
        const topo::Link& link = graph.links[id.index()];
        const bool is_forward = link.a.index() == node;
        const NodeId next = is_forward ? link.b : link.a;
        if (link.a_nic < 0 && distance[node] != kFar && distance[next.index()] < distance[node])
          hops.push_back(number_of({id, is_forward}));
      }
      const auto [at, is_new] = sets.try_emplace(hops, static_cast<std::uint32_t>(sets.size()));
      if (is_new) {
        hops_.insert(hops_.end(), hops.begin(), hops.end());
        first_of_set_.push_back(static_cast<std::uint32_t>(hops_.size()));
      }
      set_of_[node * leaves_ + leaf] = at->second;
    }
  }
}

std::span<const std::uint32_t> Routes::next_hops(NodeId node, NodeId leaf) const {
  const int number = number_of_leaf_[leaf.index()];
  REGATTA_CHECK(number >= 0);
  const std::uint32_t set = set_of_[node.index() * leaves_ + static_cast<std::size_t>(number)];
  return std::span(hops_).subspan(first_of_set_[set], first_of_set_[set + 1] - first_of_set_[set]);
}

}  // namespace regatta::fabric
