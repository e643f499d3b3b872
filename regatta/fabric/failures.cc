#include "regatta/fabric/failures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "regatta/core/check.h"
#include "regatta/fabric/routes.h"

namespace regatta::fabric {
namespace {

bool is_switch(const topo::Graph& graph, NodeId node) {
  return graph.nodes[node.index()].kind != topo::NodeKind::kServer;
}

// Links between switches, then switches, by their place.
struct Parts {
  std::vector<LinkId> links;
  std::vector<NodeId> switches;

  std::size_t size() const { return links.size() + switches.size(); }
  Failed at(std::span<const std::size_t> places) const {
    Failed failed;
    for (const std::size_t place : places) {
      if (place < links.size()) {
        failed.links.push_back(links[place]);
      } else {
        failed.switches.push_back(switches[place - links.size()]);
      }
    }
    return failed;
  }
};

Parts parts_of(const topo::Graph& graph, bool with_switches) {
  Parts parts;
  for (std::size_t id = 0; id < graph.links.size(); ++id)
    if (graph.links[id].a_nic < 0) parts.links.push_back({static_cast<int>(id)});
  for (std::size_t id = 0; with_switches && id < graph.nodes.size(); ++id)
    if (is_switch(graph, {static_cast<int>(id)})) parts.switches.push_back({static_cast<int>(id)});
  return parts;
}

// Whether failures lead traffic new ways: some leaf has no way to another one any more that it
// had. Switches that lose all their next hops lose those that led to them, too; where no leaf is
// among them, traffic only goes fewer of the ways that it went, for no way became shorter.
class NewWays {
 public:
  NewWays(const topo::Graph& graph, const Routes& routes)
      : graph_(graph),
        routes_(routes),
        is_failed_(graph.links.size(), false),
        is_gone_(graph.nodes.size(), false),
        lost_for_(graph.nodes.size(), 0),
        looked_at_(graph.nodes.size(), 0),
        sets_(graph.nodes.size()) {
    for (std::size_t node = 0; node < graph.nodes.size(); ++node)
      if (is_switch(graph, {static_cast<int>(node)})) add_sets({static_cast<int>(node)});
  }

  bool are_led(const Failed& failed) {
    ++failures_;
    mark(failed, true);
    touched_.clear();
    for (const LinkId link : failed.links) {
      touched_.push_back(graph_.links[link.index()].a);
      touched_.push_back(graph_.links[link.index()].b);
    }
    for (const NodeId node : failed.switches)
      for (const LinkId link : graph_.links_of[node.index()])
        touched_.push_back(other_end(link, node));
    const bool are = std::ranges::any_of(touched_, [&](NodeId node) { return leads_new(node); });
    mark(failed, false);
    return are;
  }

 private:
  void mark(const Failed& failed, bool value) {
    for (const LinkId link : failed.links)
      is_failed_[link.index()] = value;
    for (const NodeId node : failed.switches)
      is_gone_[node.index()] = value;
  }
  NodeId other_end(LinkId id, NodeId node) const {
    const topo::Link& link = graph_.links[id.index()];
    return link.a == node ? link.b : link.a;
  }
  NodeId head(std::uint32_t hop) const {
    const topo::Link& link = graph_.links[hop / 2];
    return hop % 2 == 0 ? link.b : link.a;
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

  bool is_dead(std::uint32_t hop) const {
    return is_failed_[hop / 2] || is_gone_[head(hop).index()];
  }

  // Whether what `node` loses by the failures themselves takes the way of some leaf.
  bool leads_new(NodeId node) {
    return std::ranges::any_of(sets_[node.index()], [&](const Set& set) {
      return std::ranges::all_of(set.hops, [&](std::uint32_t hop) { return is_dead(hop); }) &&
             std::ranges::any_of(set.leaves, [&](NodeId leaf) {
               return !is_gone_[leaf.index()] && is_lost_to_a_leaf(leaf);
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
    if (node == leaf || is_gone_[node.index()] || lost_for_[node.index()] == round_ ||
        !is_switch(graph_, node))
      return;
    const auto hops = routes_.next_hops(node, leaf);
    const bool all = !hops.empty() && std::ranges::all_of(hops, [&](std::uint32_t hop) {
      return is_dead(hop) || lost_for_[head(hop).index()] == round_;
    });
    if (!all) return;
    lost_for_[node.index()] = round_;
    lost_.push_back(node);
  }

  const topo::Graph& graph_;
  const Routes& routes_;
  std::vector<bool> is_failed_;          // per link
  std::vector<bool> is_gone_;            // per node: a switch that failed
  std::vector<std::uint64_t> lost_for_;  // per node: the last round in which it lost its next hops
  std::uint64_t round_ = 0;
  std::vector<std::uint64_t> looked_at_;  // per node: the last failures after which a leaf was
  std::uint64_t failures_ = 0;
  std::vector<std::vector<Set>> sets_;  // per node
  std::vector<NodeId> touched_;
  std::vector<NodeId> lost_;
};

// The next set of places in the order of a dictionary.
bool advance(std::vector<std::size_t>& places, std::size_t size) {
  for (std::size_t i = places.size(); i-- > 0;) {
    if (places[i] + (places.size() - i) >= size) continue;
    std::iota(places.begin() + static_cast<std::ptrdiff_t>(i), places.end(), places[i] + 1);
    return true;
  }
  return false;
}

void draw(std::vector<std::size_t>& places, std::size_t size, std::mt19937_64& random) {
  for (std::size_t i = 0; i < places.size();) {
    places[i] = random() % size;
    const auto before = std::span(places).first(i);
    if (std::ranges::find(before, places[i]) == before.end()) ++i;
  }
}

// Of `size` things, sets of `count`.
double sets_of(std::size_t size, std::size_t count) {
  double sets = 1;
  for (std::size_t i = 0; i < count; ++i)
    sets = sets * static_cast<double>(size - i) / static_cast<double>(i + 1);
  return std::round(sets);
}

bool is_cut(const Routes& routes, const Routes& left, const Failed& failed) {
  const auto works = [&](NodeId leaf) { return std::ranges::count(failed.switches, leaf) == 0; };
  return std::ranges::any_of(routes.leaves(), [&](NodeId from) {
    return works(from) && std::ranges::any_of(routes.leaves(), [&](NodeId to) {
             return from != to && works(to) && left.next_hops(from, to).empty() &&
                    !routes.next_hops(from, to).empty();
           });
  });
}

}  // namespace

topo::Graph without(const topo::Graph& graph, const Failed& failed) {
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
  REGATTA_CHECK(options.at_once >= 1);
  const Routes routes(graph);
  REGATTA_CHECK(!find_circle(graph, routes));
  const Parts parts = parts_of(graph, options.switches);
  FailureCheck check;
  std::vector<std::size_t> places(static_cast<std::size_t>(options.at_once));
  if (parts.size() < places.size()) return check;
  check.sets = sets_of(parts.size(), places.size());
  check.is_sample = places.size() > 1 && check.sets > static_cast<double>(options.most_sets);
  const std::size_t all =
      check.is_sample ? options.most_sets : static_cast<std::size_t>(check.sets);
  std::mt19937_64 random(options.seed);
  NewWays ways(graph, routes);
  std::iota(places.begin(), places.end(), 0);
  for (; check.checked < all; ++check.checked) {
    if (check.is_sample) {
      draw(places, parts.size(), random);
    } else if (check.checked > 0) {
      REGATTA_CHECK(advance(places, parts.size()));
    }
    if (options.progress) options.progress(check.checked, all);
    const Failed failed = parts.at(places);
    if (!ways.are_led(failed)) continue;
    ++check.rerouted;
    const topo::Graph left = without(graph, failed);
    const Routes others(left);
    check.unreachable += is_cut(routes, others, failed) ? 1 : 0;
    check.circle = find_circle(left, others);
    if (!check.circle) continue;
    check.failed = failed;
    ++check.checked;
    return check;
  }
  return check;
}

}  // namespace regatta::fabric
