#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/internal/failed_components.h"
#include "regatta/network/fabric/internal/failure_sets.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {
namespace {

bool is_switch(const topo::Graph& graph, NodeId node) {
  return graph.nodes[node.index()].kind != topo::NodeKind::kServer;
}

// Whether failures take paths from traffic for which it has to go others, if there are any: some
// leaf has no path to another one any more that it had. Switches that lose all their next hops lose
// those that led to them, too; where no leaf is among them, traffic only goes over fewer of the
// paths that it went, for no path became shorter.
class LostPaths {
 public:
  LostPaths(const topo::Graph& graph, const Routes& routes)
      : graph_(graph),
        routes_(routes),
        parts_(graph),
        lost_for_(graph.nodes.size(), 0),
        looked_at_(graph.nodes.size(), 0),
        sets_(graph.nodes.size()) {
    for (std::size_t node = 0; node < graph.nodes.size(); ++node)
      if (is_switch(graph, {static_cast<int>(node)})) add_sets({static_cast<int>(node)});
  }

  bool are_lost(const FailureSet& failed) {
    ++failures_;
    parts_.mark(failed, true);
    touched_.clear();
    for (const LinkId link : failed.links) {
      touched_.push_back(graph_.links[link.index()].a);
      touched_.push_back(graph_.links[link.index()].b);
    }
    for (const NodeId node : failed.switches)
      for (const LinkId link : graph_.links_of[node.index()])
        touched_.push_back(other_end(link, node));
    const bool are = std::ranges::any_of(touched_, [&](NodeId node) { return loses_paths(node); });
    parts_.mark(failed, false);
    return are;
  }

 private:
  NodeId other_end(LinkId id, NodeId node) const {
    const topo::Link& link = graph_.links[id.index()];
    return link.a == node ? link.b : link.a;
  }

  // Next hops, and the leaves that they are those to: switches have the same to many.
  struct Set {
    std::span<const std::uint32_t> hops;
    std::vector<NodeId> leaves;
  };

  void add_sets(NodeId node) {
    std::map<const std::uint32_t*, Set> sets;
    for (const NodeId leaf : routes_.leaves()) {
      const auto hops = routes_.next_hops(node, leaf);
      if (hops.empty()) continue;
      Set& set = sets[hops.data()];
      set.hops = hops;
      set.leaves.push_back(leaf);
    }
    for (auto& [hops, set] : sets)
      sets_[node.index()].push_back(std::move(set));
  }

  // Whether what `node` loses by the failures themselves takes the path of some leaf.
  bool loses_paths(NodeId node) {
    return std::ranges::any_of(sets_[node.index()], [&](const Set& set) {
      return std::ranges::all_of(set.hops,
                                 [&](std::uint32_t hop) { return parts_.is_dead(hop); }) &&
             std::ranges::any_of(set.leaves, [&](NodeId leaf) {
               return !parts_.is_gone(leaf) && is_lost_to_a_leaf(leaf);
             });
    });
  }

  bool is_lost_to_a_leaf(NodeId leaf) {
    if (looked_at_[leaf.index()] == failures_) return false;  // from another node
    looked_at_[leaf.index()] = failures_;
    ++round_;
    lost_.clear();
    for (const NodeId node : touched_)
      lose(node, leaf);
    std::size_t next = 0;
    while (next < lost_.size()) {  // lose() adds to them
      const NodeId node = lost_[next++];
      if (graph_.nodes[node.index()].kind == topo::NodeKind::kLeaf) return true;
      for (const LinkId link : graph_.links_of[node.index()])
        lose(other_end(link, node), leaf);
    }
    return false;
  }
  void lose(NodeId node, NodeId leaf) {
    if (node == leaf || parts_.is_gone(node) || lost_for_[node.index()] == round_ ||
        !is_switch(graph_, node))
      return;
    const auto hops = routes_.next_hops(node, leaf);
    const bool all = !hops.empty() && std::ranges::all_of(hops, [&](std::uint32_t hop) {
      return parts_.is_dead(hop) || lost_for_[head_of(graph_, hop).index()] == round_;
    });
    if (!all) return;
    lost_for_[node.index()] = round_;
    lost_.push_back(node);
  }

  const topo::Graph& graph_;
  const Routes& routes_;
  FailedComponents parts_;
  std::vector<std::uint64_t> lost_for_;  // per node: the last round in which it lost its next hops
  std::uint64_t round_ = 0;
  std::vector<std::uint64_t> looked_at_;  // per node: the last failures after which a leaf was
  std::uint64_t failures_ = 0;
  std::vector<std::vector<Set>> sets_;  // per node
  std::vector<NodeId> touched_;
  std::vector<NodeId> lost_;
};

// Whether traffic between leaves that work goes a next hop that it did not go before.
bool takes_new_paths(const topo::Graph& graph, const Routes& before, const Routes& now,
                     const FailureSet& failed) {
  const auto works = [&](NodeId leaf) { return std::ranges::count(failed.switches, leaf) == 0; };
  std::vector<NodeId> seen_for(graph.nodes.size());
  std::vector<NodeId> nodes;
  for (const NodeId to : before.leaves()) {
    if (!works(to)) continue;
    nodes.clear();
    const auto reach = [&](NodeId node) {
      if (node == to || seen_for[node.index()] == to) return;
      seen_for[node.index()] = to;
      nodes.push_back(node);
    };
    for (const NodeId from : before.leaves())
      if (works(from)) reach(from);
    for (std::size_t next = 0; next < nodes.size(); ++next) {
      const auto old = before.next_hops(nodes[next], to);
      for (const std::uint32_t hop : now.next_hops(nodes[next], to)) {
        if (std::ranges::find(old, hop) == old.end()) return true;
        reach(head_of(graph, hop));
      }
    }
  }
  return false;
}

bool is_cut(const Routes& routes, const Routes& left, const FailureSet& failed) {
  const auto works = [&](NodeId leaf) { return std::ranges::count(failed.switches, leaf) == 0; };
  return std::ranges::any_of(routes.leaves(), [&](NodeId from) {
    return works(from) && std::ranges::any_of(routes.leaves(), [&](NodeId to) {
             return from != to && works(to) && left.next_hops(from, to).empty() &&
                    !routes.next_hops(from, to).empty();
           });
  });
}

}  // namespace

topo::Graph without(const topo::Graph& graph, const FailureSet& failed) {
  topo::Graph left = graph;
  const auto cut = [&](LinkId id) {
    const topo::Link& link = graph.links[id.index()];
    for (const NodeId node : {link.a, link.b})
      std::erase(left.links_of[node.index()], id);
  };
  std::ranges::for_each(failed.links, cut);
  for (const NodeId node : failed.switches)
    std::ranges::for_each(graph.links_of[node.index()], cut);
  return left;
}

FailureCheck check_failures(const topo::Graph& graph, const FailureOptions& options) {
  const Routes routes(graph);
  REGATTA_CHECK(!find_dependency_cycle(graph, routes));
  FailureSetEnumerator sets(graph, options);
  FailureCheck check{.sets = sets.sets(), .is_sample = sets.is_sample()};
  LostPaths paths(graph, routes);
  while (sets.next()) {
    if (options.progress) options.progress(check.checked, sets.count());
    ++check.checked;
    if (!paths.are_lost(sets.failed())) continue;
    const topo::Graph left = without(graph, sets.failed());
    const Routes others(left);
    check.unreachable += is_cut(routes, others, sets.failed()) ? 1 : 0;
    check.rerouted += takes_new_paths(graph, routes, others, sets.failed()) ? 1 : 0;
    check.cycle = find_dependency_cycle(left, others);
    if (!check.cycle) continue;
    check.failed = sets.failed();
    break;
  }
  return check;
}

}  // namespace regatta::fabric
