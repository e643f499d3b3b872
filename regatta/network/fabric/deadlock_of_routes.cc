#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/internal/failed_components.h"
#include "regatta/network/fabric/internal/failure_sets.h"

namespace regatta::fabric {
namespace {

class LostRoutes {
 public:
  LostRoutes(const topo::Graph& graph, const Routes& routes)
      : graph_(graph), routes_(routes), parts_(graph), is_reached_(graph.nodes.size(), false) {}

  std::optional<LostRoute> find(const FailureSet& failed) {
    parts_.mark(failed, true);
    auto found = find_beside(failed);
    parts_.mark(failed, false);
    return found;
  }

 private:
  // Only switches beside what failed lose next hops.
  std::optional<LostRoute> find_beside(const FailureSet& failed) {
    std::vector<NodeId> beside;
    const auto add_ends = [&](LinkId id) {
      for (const NodeId node : {graph_.links[id.index()].a, graph_.links[id.index()].b})
        if (graph_.nodes[node.index()].kind != topo::NodeKind::kServer && !parts_.is_gone(node))
          beside.push_back(node);
    };
    std::ranges::for_each(failed.links, add_ends);
    for (const NodeId node : failed.switches)
      std::ranges::for_each(graph_.links_of[node.index()], add_ends);
    std::ranges::sort(beside);
    beside.erase(std::unique(beside.begin(), beside.end()), beside.end());
    for (const NodeId to : routes_.leaves()) {
      if (parts_.is_gone(to)) continue;
      bool is_walked = false;
      for (const NodeId at : beside) {
        if (at == to || !has_lost_all(at, to)) continue;
        if (!is_walked) walk(to);
        is_walked = true;
        if (is_reached_[at.index()]) return LostRoute{failed, at, to};
      }
    }
    return std::nullopt;
  }

  bool has_lost_all(NodeId at, NodeId to) const {
    const std::span<const std::uint32_t> hops = routes_.next_hops(at, to);
    return !hops.empty() &&
           std::ranges::all_of(hops, [&](std::uint32_t hop) { return parts_.is_dead(hop); });
  }

  // Where traffic of the leaves that work comes to on its path to `to`.
  void walk(NodeId to) {
    is_reached_.assign(graph_.nodes.size(), false);
    reached_.clear();
    const auto reach = [&](NodeId node) {
      if (is_reached_[node.index()] || node == to) return;
      is_reached_[node.index()] = true;
      reached_.push_back(node);
    };
    for (const NodeId leaf : routes_.leaves())
      if (!parts_.is_gone(leaf)) reach(leaf);
    for (std::size_t next = 0; next < reached_.size(); ++next)
      for (const std::uint32_t hop : routes_.next_hops(reached_[next], to))
        if (!parts_.is_dead(hop)) reach(head_of(graph_, hop));
  }

  const topo::Graph& graph_;
  const Routes& routes_;
  FailedComponents parts_;
  std::vector<bool> is_reached_;  // per node
  std::vector<NodeId> reached_;
};

}  // namespace

RouteFailureCheck check_route_failures(const topo::Graph& graph, const Routes& routes,
                                       const FailureOptions& options, std::size_t most_named) {
  FailureSetEnumerator sets(graph, options);
  RouteFailureCheck check{.sets = sets.sets(), .is_sample = sets.is_sample()};
  LostRoutes lost(graph, routes);
  for (; sets.next(); ++check.checked) {
    if (options.progress) options.progress(check.checked, sets.count());
    auto found = lost.find(sets.failed());
    if (!found) continue;
    ++check.losing;
    if (check.lost.size() < most_named) check.lost.push_back(*std::move(found));
  }
  return check;
}

}  // namespace regatta::fabric
