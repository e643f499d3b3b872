#include "regatta/network/fabric/deadlock.h"

#include <algorithm>
#include <iterator>

#include "regatta/network/fabric/internal/channel_dependencies.h"

namespace regatta::fabric {
namespace {

using internal::ChannelDependencies;
using internal::SwitchPorts;

// Depth first; a link in flight from the start that comes again closes a cycle.
class CycleSearch {
 public:
  CycleSearch(const ChannelDependencies& dependencies, std::size_t links)
      : dependencies_(dependencies), states_(links, State::kNew), chains_(links, 0) {}

  std::optional<DependencyCycle> from(std::uint32_t first) {
    if (states_[first] == State::kNew) enter(first);
    while (!path_.empty()) {
      const std::uint32_t link = path_.back().link;
      const auto next = dependencies_.next(link, path_.back().port);
      seen_ += next ? 1 : 0;
      if (!next) {
        states_[link] = State::kDone;
        path_.pop_back();
        if (!path_.empty()) add_behind(path_.back().link, link);
      } else if (states_[*next] == State::kOnTheWay) {
        return circle_from(*next);
      } else if (states_[*next] == State::kNew) {
        enter(*next);
      } else {
        add_behind(link, *next);
      }
    }
    return std::nullopt;
  }

  std::size_t seen() const { return seen_; }  // dependencies
  // The longest chain of dependencies that begins at a link which was done.
  std::size_t chain(std::uint32_t link) const { return chains_[link]; }

 private:
  enum class State : std::uint8_t { kNew, kOnTheWay, kDone };
  struct Step {
    std::uint32_t link;
    std::size_t port;  // the first dependency of `link` that is not visited yet
  };

  void enter(std::uint32_t link) {
    states_[link] = State::kOnTheWay;
    path_.push_back({link, 0});
  }
  void add_behind(std::uint32_t link, std::uint32_t next) {
    chains_[link] = std::max(chains_[link], chains_[next] + 1);
  }
  DependencyCycle circle_from(std::uint32_t link) const {
    DependencyCycle cycle;
    std::transform(std::ranges::find(path_, link, &Step::link), path_.end(),
                   std::back_inserter(cycle), [](const Step& step) { return step.link; });
    return cycle;
  }

  const ChannelDependencies& dependencies_;
  std::vector<State> states_;          // per directed link
  std::vector<std::uint32_t> chains_;  // the same
  std::vector<Step> path_;
  std::size_t seen_ = 0;
};

// Searches from all links, node by node in the order of the ports.
std::optional<DependencyCycle> search(const topo::Graph& graph, const SwitchPorts& ports,
                                      CycleSearch& search) {
  for (std::size_t at = 0; at < graph.nodes.size(); ++at) {
    const NodeId node{static_cast<int>(at)};
    for (std::size_t port = 0; port < ports.count(node); ++port)
      if (auto cycle = search.from(ports.out(node, port))) return cycle;
  }
  return std::nullopt;
}

// Counts dependencies of links that lead down on links that lead up.
std::size_t count_bounces(const topo::Graph& graph, const SwitchPorts& ports,
                          const ChannelDependencies& dependencies) {
  const auto tier = [&](NodeId node) { return graph.nodes[node.index()].kind; };
  std::size_t bounces = 0;
  for (std::uint32_t link = 0; link < ports.links(); ++link) {
    if (graph.links[link / 2].a_nic >= 0 || tier(ports.head(link)) > tier(ports.head(link ^ 1U)))
      continue;
    std::size_t port = 0;
    while (const auto next = dependencies.next(link, port))
      bounces += tier(ports.head(*next)) > tier(ports.head(link)) ? 1 : 0;
  }
  return bounces;
}

}  // namespace

std::optional<DependencyCycle> find_dependency_cycle(const topo::Graph& graph,
                                                     const Routes& routes) {
  const SwitchPorts ports(graph);
  const ChannelDependencies dependencies = dependencies_of(ports, graph, routes);
  CycleSearch cycles(dependencies, ports.links());
  return search(graph, ports, cycles);
}

DeadlockCheck check_deadlock(const topo::Graph& graph, const Routes& routes) {
  const SwitchPorts ports(graph);
  const ChannelDependencies dependencies = dependencies_of(ports, graph, routes);
  CycleSearch cycles(dependencies, ports.links());
  DeadlockCheck check;
  check.cycle = search(graph, ports, cycles);
  check.bounces = count_bounces(graph, ports, dependencies);
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < ports.links(); ++link)
    if (graph.links[link / 2].a_nic < 0) links.push_back(link);
  check.links = links.size();
  if (check.cycle) return check;
  check.dependencies = cycles.seen();
  std::size_t longest = 0;
  for (const std::uint32_t link : links)
    longest = std::max(longest, cycles.chain(link));
  if (!links.empty()) check.layers.resize(longest + 1, 0);
  for (const std::uint32_t link : links)
    ++check.layers[longest - cycles.chain(link)];
  return check;
}

std::optional<NodeId> cause_of_dependency(const topo::Graph& graph, const Routes& routes,
                                          std::uint32_t link, std::uint32_t next) {
  const NodeId tail = tail_of(graph, link);
  const NodeId head = head_of(graph, link);
  for (const NodeId leaf : routes.leaves()) {
    const auto goes = [&](NodeId node, std::uint32_t by) {
      return node != leaf && std::ranges::count(routes.next_hops(node, leaf), by) > 0;
    };
    if (!goes(tail, link) || !goes(head, next)) continue;
    // Whether traffic of another leaf comes to where `link` begins.
    std::vector<bool> is_passed(graph.nodes.size(), false);
    std::vector<NodeId> open;
    const auto pass = [&](NodeId node) {
      if (is_passed[node.index()] || node == leaf) return;
      is_passed[node.index()] = true;
      open.push_back(node);
    };
    std::ranges::for_each(routes.leaves(), pass);
    std::size_t at = 0;
    while (at < open.size()) {  // pass() adds to them
      for (const std::uint32_t hop : routes.next_hops(open[at++], leaf))
        pass(head_of(graph, hop));
    }
    if (is_passed[tail.index()]) return leaf;
  }
  return std::nullopt;
}

}  // namespace regatta::fabric
