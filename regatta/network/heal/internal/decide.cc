#include "regatta/network/heal/internal/decide.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph_names.h"

namespace regatta::heal {
namespace {

// How bad each part of the fabric is: 0: not at all; otherwise a fault, of which a larger number is
// worse.
class Ranks {
 public:
  Ranks(const FabricPaths& paths, std::span<const Fault> faults)
      : links_(paths.end_of.size(), 0), nodes_(count_nodes(paths), 0) {
    std::vector<std::size_t> order(faults.size());  // the worst last, of equal harm the oldest
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return std::pair(faults[a].harm, b) < std::pair(faults[b].harm, a);
    });
    for (const std::size_t i : order) {
      fault_of_.push_back(i);
      level_of_.push_back(1 + static_cast<int>(faults[i].harm));
      const auto rank = static_cast<std::uint32_t>(fault_of_.size());
      const Fault& fault = faults[i];
      if (fault.place == Place::kSwitch) nodes_[fault.node.index()] = rank;
      if (fault.place == Place::kLink) links_[fault.link] = rank;
      if (fault.place == Place::kHop) hops_[{fault.link, fault.node.value}] = rank;
    }
  }

  std::uint32_t of_node(NodeId node) const { return nodes_[node.index()]; }
  std::uint32_t of_hop(std::uint32_t link, NodeId leaf) const {
    const auto found = hops_.find({link, leaf.value});
    return std::max(links_[link], found == hops_.end() ? 0 : found->second);
  }
  std::size_t fault_of(std::uint32_t rank) const { return fault_of_[rank - 1]; }
  // Faults that are equally bad have the same level; 0: none.
  int level(std::uint32_t rank) const { return rank == 0 ? 0 : level_of_[rank - 1]; }

 private:
  static std::size_t count_nodes(const FabricPaths& paths) {
    int last = 0;
    for (const NodeId node : paths.end_of)
      last = std::max(last, node.value);
    return static_cast<std::size_t>(last) + 1;
  }

  std::vector<std::uint32_t> links_;
  std::vector<std::uint32_t> nodes_;
  std::map<std::pair<std::uint32_t, int>, std::uint32_t> hops_;
  std::vector<std::size_t> fault_of_;  // by rank - 1
  std::vector<int> level_of_;          // the same
};

// Whether a fault lies on some path to `leaf`.
bool touches(const FabricPaths& paths, const Fault& fault, NodeId leaf) {
  if (fault.place == Place::kSwitch) return true;
  if (fault.place == Place::kHop && fault.node != leaf) return false;
  const auto hops = paths.routes.next_hops(paths.start_of[fault.link], leaf);
  return std::ranges::find(hops, fault.link) != hops.end();
}

}  // namespace

FabricPaths::FabricPaths(const topo::Graph& graph) : routes(graph) {
  for (const topo::Link& link : graph.links) {
    start_of.insert(start_of.end(), {link.a, link.b});
    end_of.insert(end_of.end(), {link.b, link.a});
  }
  for (const NodeId leaf : routes.leaves()) {
    const std::vector<int> distance = topo::distances_to(graph, leaf);
    std::vector<NodeId>& towards = switches.emplace_back();
    for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node)
      if (!routes.next_hops(NodeId{node}, leaf).empty()) towards.push_back(NodeId{node});
    std::ranges::stable_sort(towards, {}, [&](NodeId node) { return distance[node.index()]; });
  }
}

Decision decide(const FabricPaths& paths, std::span<const Fault> faults) {
  Decision decision;
  if (faults.empty()) return decision;
  const Ranks ranks(paths, faults);
  std::vector<bool> is_leaf(paths.end_of.size(), false);  // nodes are fewer than link ends
  for (const NodeId leaf : paths.routes.leaves())
    is_leaf[leaf.index()] = true;
  // Worst fault on the best path from each switch, without the switch's own.
  std::vector<std::uint32_t> worst(paths.end_of.size(), 0);
  std::vector<std::uint32_t> costs;
  for (std::size_t i = 0; i < paths.switches.size(); ++i) {
    const NodeId leaf = paths.routes.leaves()[i];
    if (std::ranges::none_of(faults, [&](const Fault& one) { return touches(paths, one, leaf); }))
      continue;
    worst[leaf.index()] = 0;
    for (const NodeId node : paths.switches[i]) {
      const auto hops = paths.routes.next_hops(node, leaf);
      costs.clear();
      for (const std::uint32_t hop : hops) {
        const NodeId next = paths.end_of[hop];
        costs.push_back(
            std::max({ranks.of_hop(hop, leaf), ranks.of_node(next), worst[next.index()]}));
      }
      const std::uint32_t best = std::ranges::min(costs);
      worst[node.index()] = best;
      if (best > 0 && is_leaf[node.index()])
        decision.refusals.push_back({node, leaf, ranks.fault_of(best)});
      const auto is_left = [&](std::uint32_t cost) {
        return ranks.level(cost) == ranks.level(best);
      };
      if (std::ranges::all_of(costs, is_left)) continue;
      Withdrawal& withdrawal = decision.withdrawals.emplace_back();
      withdrawal.node = node;
      withdrawal.leaf = leaf;
      for (std::size_t hop = 0; hop < hops.size(); ++hop)
        if (is_left(costs[hop])) withdrawal.left.push_back(hops[hop]);
    }
  }
  return decision;
}

std::string to_string(const topo::Graph& graph, const Fault& fault) {
  if (fault.place == Place::kSwitch)
    return fmt::format("switch {}", graph.nodes[fault.node.index()].name);
  if (fault.place == Place::kHop) {
    return fmt::format("{} from {} towards {}", graph.links[fault.link / 2].name,
                       graph.nodes[fabric::tail_of(graph, fault.link).index()].name,
                       graph.nodes[fault.node.index()].name);
  }
  return topo::to_string(graph, fabric::directed_link(fault.link));
}

}  // namespace regatta::heal
