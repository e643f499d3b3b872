#include "regatta/network/heal/internal/decide.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/heal/internal/path_losses.h"

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

// Share that is lost on the way from a switch to the leaf, over the hops that it keeps.
struct ShareLost {
  double in_use = 0;
  double if_used = 0;
};

// One hop of a switch.
struct HopChoice {
  std::uint32_t cost = 0;  // the rank of the worst fault on its best path
  bool is_kept = false;
  ShareLost lost;
};

class Decider {
 public:
  Decider(const FabricPaths& paths, std::span<const Fault> faults, const PathLosses* losses)
      : paths_(paths),
        ranks_(paths, faults),
        losses_(losses != nullptr && losses->is_lossy() ? losses : nullptr),
        is_leaf_(paths.end_of.size(), false),
        worst_(paths.end_of.size(), 0),
        lost_(paths.end_of.size()) {
    for (const NodeId leaf : paths.routes.leaves())
      is_leaf_[leaf.index()] = true;
  }

  // The routes of all switches to leaf `number` of paths.routes.leaves().
  void decide_towards(std::size_t number, Decision& decision) {
    const NodeId leaf = paths_.routes.leaves()[number];
    worst_[leaf.index()] = 0;
    lost_[leaf.index()] = {};
    for (const NodeId node : paths_.switches[number]) {
      choose(node, leaf);
      const std::uint32_t best = worst_[node.index()];
      if (best > 0 && is_leaf_[node.index()])
        decision.refusals.push_back({node, leaf, ranks_.fault_of(best)});
      if (std::ranges::all_of(hops_, &HopChoice::is_kept)) continue;
      Withdrawal& withdrawal = decision.withdrawals.emplace_back();
      withdrawal.node = node;
      withdrawal.leaf = leaf;
      const auto hops = paths_.routes.next_hops(node, leaf);
      for (std::size_t hop = 0; hop < hops.size(); ++hop)
        if (hops_[hop].is_kept) withdrawal.left.push_back(hops[hop]);
    }
  }

  // By fault.
  const std::map<std::size_t, ShareLost>& costly() const { return costly_; }

 private:
  void choose(NodeId node, NodeId leaf) {
    hops_.clear();
    for (const std::uint32_t hop : paths_.routes.next_hops(node, leaf)) {
      const NodeId next = paths_.end_of[hop];
      hops_.push_back(
          {.cost = std::max({ranks_.of_hop(hop, leaf), ranks_.of_node(next), worst_[next.index()]}),
           .lost = lost_over(hop)});
    }
    const std::uint32_t best = std::ranges::min_element(hops_, {}, &HopChoice::cost)->cost;
    worst_[node.index()] = best;
    for (HopChoice& hop : hops_)
      hop.is_kept = ranks_.level(hop.cost) == ranks_.level(best);
    if (losses_ == nullptr) return;
    lost_[node.index()] = {mean_lost(&ShareLost::in_use), mean_lost(&ShareLost::if_used)};
    for (const HopChoice& hop : hops_) {
      const bool is_costly = !hop.is_kept && hop.lost.if_used < lost_[node.index()].in_use;
      if (!is_costly) continue;
      ShareLost& most = costly_[ranks_.fault_of(hop.cost)];
      if (lost_[node.index()].in_use > most.in_use)
        most = {lost_[node.index()].in_use, hop.lost.if_used};
    }
  }

  ShareLost lost_over(std::uint32_t hop) const {
    if (losses_ == nullptr) return {};
    const ShareLost& rest = lost_[paths_.end_of[hop].index()];
    return {1 - (1 - losses_->in_use(hop)) * (1 - rest.in_use),
            1 - (1 - losses_->if_used(hop)) * (1 - rest.if_used)};
  }

  // Over the hops that are kept.
  double mean_lost(double ShareLost::*share) const {
    double sum = 0;
    int count = 0;
    for (const HopChoice& hop : hops_) {
      if (!hop.is_kept) continue;
      sum += hop.lost.*share;
      ++count;
    }
    return sum / count;
  }

  const FabricPaths& paths_;
  const Ranks ranks_;
  const PathLosses* losses_;          // null: nothing is lost
  std::vector<bool> is_leaf_;         // by node; nodes are fewer than link ends
  std::vector<std::uint32_t> worst_;  // on the best path from each switch, without its own
  std::vector<ShareLost> lost_;       // by node
  std::vector<HopChoice> hops_;       // of the switch at hand
  std::map<std::size_t, ShareLost> costly_;
};

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

Decision decide(const FabricPaths& paths, std::span<const Fault> faults, const PathLosses* losses) {
  if (faults.empty()) return {};
  Decision decision;
  Decider decider(paths, faults, losses);
  for (std::size_t i = 0; i < paths.switches.size(); ++i) {
    const NodeId leaf = paths.routes.leaves()[i];
    const bool is_touched =
        std::ranges::any_of(faults, [&](const Fault& one) { return touches(paths, one, leaf); });
    if (is_touched) decider.decide_towards(i, decision);
  }
  for (const auto& [fault, lost] : decider.costly())
    decision.costly.push_back({fault, lost.in_use, lost.if_used});
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
