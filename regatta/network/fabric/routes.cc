#include "regatta/network/fabric/routes.h"

#include <algorithm>
#include <map>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"

namespace regatta::fabric {

Links links_of(const topo::Graph& graph) {
  Links links;
  for (const topo::Link& link : graph.links) {
    links.add(link.rate, link.latency);
    links.add(link.rate, link.latency);
  }
  return links;
}

Routes::Routes(const topo::Graph& graph) : number_of_leaf_(graph.nodes.size(), -1) {
  for (const topo::Link& link : graph.links) {
    switch_of_.push_back(link.a_nic >= 0 ? link.b : NodeId());
    end_of_.push_back(link.b);
    end_of_.push_back(link.a);
    if (link.a_nic < 0 || number_of_leaf_[link.b.index()] >= 0) continue;
    number_of_leaf_[link.b.index()] = static_cast<int>(leaves_.size());
    leaves_.push_back(link.b);
  }
  set_of_.resize(graph.nodes.size() * leaves_.size());
  std::map<std::vector<std::uint32_t>, std::uint32_t> sets;
  std::vector<std::uint32_t> hops;
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    const std::vector<int> distance = topo::distances_to(graph, leaves_[leaf]);
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
      const NodeId here{static_cast<int>(node)};
      hops.clear();
      for (const LinkId id : topo::next_hop_links(graph, here, distance))
        hops.push_back(number_of({id, graph.links[id.index()].a == here}));
      const auto [at, is_new] = sets.try_emplace(hops, static_cast<std::uint32_t>(sets.size()));
      if (is_new) {
        hops_.insert(hops_.end(), hops.begin(), hops.end());
        first_of_set_.push_back(static_cast<std::uint32_t>(hops_.size()));
      }
      set_of_[node * leaves_.size() + leaf] = at->second;
    }
  }
}

DModKNextHop::DModKNextHop(const topo::Graph& graph) : divisor_(graph.nodes.size(), 1) {
  std::size_t uplinks = 1;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].kind != topo::NodeKind::kLeaf) continue;
    uplinks =
        static_cast<std::size_t>(std::ranges::count_if(graph.links_of[node], [&](LinkId link) {
          return graph.links[link.index()].a.index() == node;
        }));
    break;  // all leaves have the same
  }
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    if (graph.nodes[node].kind == topo::NodeKind::kSpine) divisor_[node] = uplinks;
}

std::span<const std::uint32_t> Routes::next_hops(NodeId node, NodeId leaf) const {
  const int number = number_of_leaf_[leaf.index()];
  REGATTA_CHECK(number >= 0);
  const std::uint32_t set = set_of_[node.index() * leaves_.size() + as_index(number)];
  return std::span(hops_).subspan(first_of_set_[set], first_of_set_[set + 1] - first_of_set_[set]);
}

void Routes::set_next_hops(NodeId node, NodeId leaf, std::span<const std::uint32_t> hops) {
  const int number = number_of_leaf_[leaf.index()];
  REGATTA_CHECK(number >= 0);
  hops_.insert(hops_.end(), hops.begin(), hops.end());
  first_of_set_.push_back(static_cast<std::uint32_t>(hops_.size()));
  set_of_[node.index() * leaves_.size() + as_index(number)] =
      static_cast<std::uint32_t>(first_of_set_.size() - 2);
}

}  // namespace regatta::fabric
