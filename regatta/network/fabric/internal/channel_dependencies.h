// fabric/internal/channel_dependencies.h: the graph of dependencies between links of switches, in
// which deadlock.h searches cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric::internal {

using Bits = std::vector<std::uint64_t>;

inline bool has(std::span<const std::uint64_t> bits, std::size_t at) {
  return (bits[at / 64] >> (at % 64) & 1U) != 0;
}
inline void set(std::span<std::uint64_t> bits, std::size_t at) {
  bits[at / 64] |= std::uint64_t{1} << (at % 64);
}

// The ports of switches: their links to other switches, by index. Servers do not forward, so the
// queues before their NICs always drain, and no dependency leads on from there.
class SwitchPorts {
 public:
  explicit SwitchPorts(const topo::Graph& graph) : ports_(graph.nodes.size()) {
    for (std::size_t id = 0; id < graph.links.size(); ++id) {
      const topo::Link& link = graph.links[id];
      ends_.push_back({link.a, link.b, 0, 0});
      if (link.a_nic >= 0) continue;
      const auto number = static_cast<std::uint32_t>(2 * id);
      ends_.back().a_port = ports_[link.a.index()].size();
      ends_.back().b_port = ports_[link.b.index()].size();
      ports_[link.a.index()].push_back(number);
      ports_[link.b.index()].push_back(number + 1);
    }
  }

  std::size_t links() const { return 2 * ends_.size(); }  // directed ones
  std::size_t count(NodeId node) const { return ports_[node.index()].size(); }
  // The directed link that leaves by a port.
  std::uint32_t out(NodeId node, std::size_t port) const { return ports_[node.index()][port]; }
  NodeId head(std::uint32_t link) const {
    return link % 2 == 0 ? ends_[link / 2].b : ends_[link / 2].a;
  }
  std::size_t head_port(std::uint32_t link) const {
    return link % 2 == 0 ? ends_[link / 2].b_port : ends_[link / 2].a_port;
  }
  std::size_t tail_port(std::uint32_t link) const {
    return link % 2 == 0 ? ends_[link / 2].a_port : ends_[link / 2].b_port;
  }

 private:
  struct Ends {
    NodeId a;
    NodeId b;
    std::size_t a_port;
    std::size_t b_port;
  };
  std::vector<Ends> ends_;                         // per link
  std::vector<std::vector<std::uint32_t>> ports_;  // per node, directed links out of it
};

// Per switch and input port: the output ports that its traffic waits for.
class ChannelDependencies {
 public:
  ChannelDependencies(const topo::Graph& graph, const SwitchPorts& ports) : ports_(ports) {
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
      const std::size_t count = ports.count({static_cast<int>(node)});
      words_.push_back((count + 63) / 64);
      rows_.emplace_back(count * words_.back(), 0);
    }
  }

  // Adds those of traffic from all leaves to `to`; hops(node) are its next hops at a node.
  template <typename Hops>
  void add(const std::vector<NodeId>& leaves, NodeId to, Hops&& hops) {
    std::vector<Bits> comes_in(rows_.size());
    std::vector<bool> is_known(rows_.size(), false);
    std::deque<NodeId> open;
    for (const NodeId leaf : leaves) {
      if (leaf == to) continue;
      is_known[leaf.index()] = true;
      open.push_back(leaf);
    }
    std::vector<NodeId> passed;
    while (!open.empty()) {
      const NodeId node = open.front();
      open.pop_front();
      passed.push_back(node);
      for (const std::uint32_t link : hops(node)) {
        const NodeId next = ports_.head(link);
        comes_in[next.index()].resize(words_[next.index()], 0);
        set(comes_in[next.index()], ports_.head_port(link));
        if (is_known[next.index()] || next == to) continue;
        is_known[next.index()] = true;
        open.push_back(next);
      }
    }
    for (const NodeId node : passed)
      if (!comes_in[node.index()].empty())
        add_dependencies(node, comes_in[node.index()], hops(node));
  }

  // The first link from `port` on that `link` waits for; moves `port` behind it. None: no more.
  std::optional<std::uint32_t> next(std::uint32_t link, std::size_t& port) const {
    const NodeId head = ports_.head(link);
    const std::size_t words = words_[head.index()];
    const auto row = std::span(rows_[head.index()]).subspan(ports_.head_port(link) * words, words);
    while (port < ports_.count(head) && !has(row, port))
      ++port;
    if (port >= ports_.count(head)) return std::nullopt;
    return ports_.out(head, port++);
  }

 private:
  void add_dependencies(NodeId node, const Bits& comes_in, std::span<const std::uint32_t> hops) {
    Bits leaves_by(words_[node.index()], 0);
    for (const std::uint32_t link : hops)
      set(leaves_by, ports_.tail_port(link));
    for (std::size_t port = 0; port < ports_.count(node); ++port) {
      if (!has(comes_in, port)) continue;
      const std::span<std::uint64_t> row = row_of(node, port);
      for (std::size_t word = 0; word < row.size(); ++word)
        row[word] |= leaves_by[word];
    }
  }
  std::span<std::uint64_t> row_of(NodeId node, std::size_t port) {
    const std::size_t words = words_[node.index()];
    return std::span(rows_[node.index()]).subspan(port * words, words);
  }

  const SwitchPorts& ports_;
  std::vector<std::size_t> words_;  // per node, of a row
  std::vector<Bits> rows_;          // per node, a row per port
};

// The dependencies of the traffic between all leaves.
inline ChannelDependencies dependencies_of(const SwitchPorts& ports, const topo::Graph& graph,
                                           const Routes& routes) {
  ChannelDependencies dependencies(graph, ports);
  for (const NodeId leaf : routes.leaves())
    dependencies.add(routes.leaves(), leaf,
                     [&](NodeId node) { return routes.next_hops(node, leaf); });
  return dependencies;
}

}  // namespace regatta::fabric::internal
