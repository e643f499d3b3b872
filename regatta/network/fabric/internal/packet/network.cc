#include "regatta/network/fabric/internal/packet/network.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/check.h"

namespace regatta::fabric::packet {
namespace {

Network::Link link_of(const topo::Link& link, bool forward) {
  const double per_byte = 1e12 / link.rate.value;
  return {.rate = static_cast<std::uint64_t>(std::llround(per_byte * 0x1p20)),
          .latency = std::llround(link.latency.value * 1e12),
          .end = static_cast<std::uint32_t>(forward ? link.b.value : link.a.value),
          .is_to_host = link.a_nic >= 0 && !forward,
          .is_from_host = link.a_nic >= 0 && forward};
}

// Both pipes of a device lead to and from one node that all servers share.
Network::Link pipe_of(const Links& pipes, std::size_t i, std::size_t inside) {
  return {.rate = static_cast<std::uint64_t>(std::llround(1e12 / pipes.capacity[i] * 0x1p20)),
          .latency = std::llround(pipes.latency[i] * 1e12),
          .end = static_cast<std::uint32_t>(inside),
          .is_to_host = i % 2 == 1,
          .is_from_host = i % 2 == 0,
          .is_pipe = true};
}

// As links of the network; none: it takes no time.
std::optional<Pipes::Way> way_inside(const PacketScene& scene, std::size_t pair) {
  if (scene.pipes == nullptr || pair >= scene.pipes->ways.size()) return std::nullopt;
  const Pipes::Way way = scene.pipes->ways[pair];
  if (way.out == kNone) return std::nullopt;
  REGATTA_CHECK(way.out < scene.pipes->links.capacity.size() && way.out % 2 == 0);
  REGATTA_CHECK(way.into < scene.pipes->links.capacity.size() && way.into % 2 == 1);
  const auto first = static_cast<std::uint32_t>(2 * scene.graph.links.size());
  return Pipes::Way{first + way.out, first + way.into};
}

// Writes ways one after the other. Unlike Routes::way() it ends where the routes never do.
class WayWriter {
 public:
  WayWriter(const PacketScene& scene, Network& network)
      : scene_(scene), network_(network), seen_(scene.graph.nodes.size(), kNone) {}

  // Whether there is one.
  bool write(std::size_t number, const ByHash& choose) {
    const Pair& pair = scene_.pairs.pairs[number];
    const auto first = static_cast<std::uint32_t>(network_.ways.size());
    if (const auto inside = way_inside(scene_, number); inside) {
      network_.way_of.push_back(first);
      network_.latency_of.push_back(0);
      add(inside->out);
      add(inside->into);
      return true;
    }
    if (pair.from == pair.to) {
      network_.way_of.push_back(kNone);
      network_.latency_of.push_back(0);
      return true;
    }
    network_.way_of.push_back(first);
    network_.latency_of.push_back(0);
    add(number_of({pair.from, true}));
    const auto last = static_cast<std::uint32_t>(end_of_link(number_of({pair.to, true})));
    nodes_.clear();
    std::uint32_t node = end_of_link(number_of({pair.from, true}));
    bool is_whole = true;
    for (; node != last && seen_[node] == kNone;) {
      seen_[node] = static_cast<std::uint32_t>(network_.ways.size());
      nodes_.push_back(node);
      const NodeId here{static_cast<int>(node)};
      const auto hops = scene_.routes.next_hops(here, NodeId{static_cast<int>(last)});
      is_whole = !hops.empty();
      if (!is_whole) break;
      add(hops[hops.size() == 1 ? 0 : choose(here, hops.size())]);
      node = end_of_link(network_.ways.back());
    }
    if (!is_whole) network_.ways.push_back(Network::kNowhere);
    if (is_whole && node == last) add(number_of({pair.to, false}));
    if (is_whole && node != last) network_.ways.push_back(Network::kBack | seen_[node]);
    for (const std::uint32_t passed : nodes_)
      seen_[passed] = kNone;
    return is_whole;
  }

 private:
  std::uint32_t end_of_link(std::uint32_t link) const { return network_.links[link].end; }
  void add(std::uint32_t link) {
    network_.ways.push_back(link);
    network_.latency_of.back() += network_.links[link].latency;
  }

  const PacketScene& scene_;
  Network& network_;
  std::vector<std::uint32_t> seen_;  // per node: where the way leaves it; kNone: it has not come by
  std::vector<std::uint32_t> nodes_;
};

}  // namespace

Result<Network> make_network(const PacketScene& scene, const PacketOptions& options) {
  Network network;
  for (const topo::Link& link : scene.graph.links)
    for (const bool forward : {true, false})
      network.links.push_back(link_of(link, forward));
  const std::size_t inside = scene.graph.nodes.size();
  for (std::size_t i = 0; scene.pipes != nullptr && i < scene.pipes->links.capacity.size(); ++i)
    network.links.push_back(pipe_of(scene.pipes->links, i, inside));
  WayWriter writer(scene, network);
  for (std::uint32_t pair = 0; pair < scene.pairs.pairs.size(); ++pair) {
    const LinkId to = scene.pairs.pairs[pair].to;
    network.targets.push_back({static_cast<std::uint32_t>(scene.graph.links[to.index()].b.value),
                               number_of({to, false})});
    if (const auto way = way_inside(scene, pair); way)
      network.targets.back() = {static_cast<std::uint32_t>(inside), way->into};
    for (std::uint32_t i = 0; i < scene.pairs.connections; ++i) {
      const ByHash choose{scene.pairs.tuple(pair, i), scene.seeds, options.policy};
      if (writer.write(pair, choose)) continue;
      const auto name = [&](LinkId link) { return scene.graph.links[link.index()].name; };
      return Error{
          Code::kInvalidInput,
          fmt::format("no way leads from {} to {}; change the routes or the pair",
                      name(scene.pairs.pairs[pair].from), name(scene.pairs.pairs[pair].to))};
    }
  }
  return network;
}

void lead_again(const PacketScene& scene, HashPolicy policy, Network& network) {
  const std::vector<std::uint32_t> ways = std::exchange(network.way_of, {});
  const std::vector<Picoseconds> latencies = std::exchange(network.latency_of, {});
  WayWriter writer(scene, network);
  for (std::uint32_t pair = 0; pair < scene.pairs.pairs.size(); ++pair)
    for (std::uint32_t i = 0; i < scene.pairs.connections; ++i) {
      const ByHash choose{scene.pairs.tuple(pair, i), scene.seeds, policy};
      if (writer.write(pair, choose)) continue;
      network.way_of.back() = ways[network.way_of.size() - 1];
      network.latency_of.back() = latencies[network.way_of.size() - 1];
    }
}

}  // namespace regatta::fabric::packet
