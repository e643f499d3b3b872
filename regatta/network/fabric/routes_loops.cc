#include <span>

#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {
namespace {

// The paths to one leaf, looked at in depth from wherever traffic begins.
class LoopSearch {
 public:
  LoopSearch(const topo::Graph& graph, const Routes& routes, NodeId leaf)
      : graph_(graph), routes_(routes), leaf_(leaf), states_(graph.nodes.size(), State::kNew) {}

  // A loop on the paths from a node; empty: there is none.
  std::vector<std::uint32_t> from(NodeId node) {
    open(node);
    while (!steps_.empty()) {
      Step& step = steps_.back();
      if (step.next == step.hops.size()) {
        close();
        continue;
      }
      const std::uint32_t link = step.hops[step.next++];
      const NodeId end = head_of(graph_, link);
      if (states_[end.index()] == State::kOpen) return loop(end, link);
      if (states_[end.index()] != State::kNew) continue;
      links_.push_back(link);
      open(end);
    }
    return {};
  }

 private:
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  struct Step {
    NodeId node;
    std::span<const std::uint32_t> hops;
    std::size_t next = 0;
  };

  void open(NodeId node) {
    if (states_[node.index()] != State::kNew) return;
    states_[node.index()] = State::kOpen;
    steps_.push_back({node, routes_.next_hops(node, leaf_)});
  }

  void close() {
    states_[steps_.back().node.index()] = State::kDone;
    steps_.pop_back();
    if (!links_.empty()) links_.pop_back();
  }

  // The links from the node up to the link that leads back to it.
  std::vector<std::uint32_t> loop(NodeId node, std::uint32_t last) const {
    std::size_t begin = 0;
    while (steps_[begin].node != node)
      ++begin;
    std::vector<std::uint32_t> links(links_.begin() + static_cast<std::ptrdiff_t>(begin),
                                     links_.end());
    links.push_back(last);
    return links;
  }

  const topo::Graph& graph_;
  const Routes& routes_;
  NodeId leaf_;
  std::vector<State> states_;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> links_;  // from each step to the next
};

}  // namespace

std::optional<RouteLoop> find_loop(const topo::Graph& graph, const Routes& routes) {
  for (const NodeId leaf : routes.leaves()) {
    LoopSearch search(graph, routes, leaf);
    for (const NodeId from : routes.leaves()) {
      if (from == leaf) continue;
      if (auto links = search.from(from); !links.empty()) return RouteLoop{leaf, std::move(links)};
    }
  }
  return std::nullopt;
}

}  // namespace regatta::fabric
