#include "regatta/network/fabric/internal/packet/packet_network.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/result.h"

namespace regatta::fabric::packet {
namespace {

// The fractions of picoseconds that are kept: fewer on slow links, whose packets take long, so that
// no product of rate and bytes of a packet overflows.
std::uint8_t shift_of(double per_byte) {
  constexpr double kMostRate = 0x1p46;
  std::uint8_t shift = 20;
  while (shift > 0 && per_byte * static_cast<double>(1U << shift) >= kMostRate)
    --shift;
  return shift;
}

std::uint64_t rate_of(double per_byte) {
  return static_cast<std::uint64_t>(
      std::llround(per_byte * static_cast<double>(1U << shift_of(per_byte))));
}

PacketNetwork::Link link_of(const topo::Link& link, bool forward) {
  const double per_byte = 1e12 / link.rate.value;
  return {.rate = rate_of(per_byte),
          .latency = std::llround(link.latency.value * 1e12),
          .end = static_cast<std::uint32_t>(forward ? link.b.value : link.a.value),
          .shift = shift_of(per_byte),
          .is_to_host = link.a_nic >= 0 && !forward,
          .is_from_host = link.a_nic >= 0 && forward};
}

// Both intra_server_links of a device lead to and from one node that all servers share.
PacketNetwork::Link intra_server_link_of(const Links& intra_server_links, std::size_t i,
                                         std::size_t inside) {
  const double per_byte = 1e12 / intra_server_links.capacity[i];
  return {.rate = rate_of(per_byte),
          .latency = std::llround(intra_server_links.latency[i] * 1e12),
          .end = static_cast<std::uint32_t>(inside),
          .shift = shift_of(per_byte),
          .is_to_host = i % 2 == 1,
          .is_from_host = i % 2 == 0,
          .is_intra_server = true};
}

// As links of the network; none: it takes no time.
std::optional<IntraServerLinks::Path> intra_server_path(const PacketSetup& setup,
                                                        std::size_t pair) {
  if (setup.intra_server_links == nullptr || pair >= setup.intra_server_links->paths.size())
    return std::nullopt;
  const IntraServerLinks::Path path = setup.intra_server_links->paths[pair];
  if (path.out == kNone) return std::nullopt;
  REGATTA_CHECK(path.out < setup.intra_server_links->links.capacity.size() && path.out % 2 == 0);
  REGATTA_CHECK(path.into < setup.intra_server_links->links.capacity.size() && path.into % 2 == 1);
  const auto first = static_cast<std::uint32_t>(2 * setup.graph.links.size());
  return IntraServerLinks::Path{first + path.out, first + path.into};
}

// Writes paths one after the other. Unlike Routes::path() it ends where the routes never do.
class PathWriter {
 public:
  PathWriter(const PacketSetup& setup, PacketNetwork& network)
      : setup_(setup), network_(network), seen_(setup.graph.nodes.size(), kNone) {}

  // Whether there is one.
  bool write(std::size_t number, const EcmpNextHop& choose) {
    const NicPair& pair = setup_.pairs.pairs[number];
    const auto first = static_cast<std::uint32_t>(network_.paths.size());
    if (const auto inside = intra_server_path(setup_, number); inside) {
      network_.path_of.push_back(first);
      network_.latency_of.push_back(0);
      add(inside->out);
      add(inside->into);
      return true;
    }
    if (pair.from == pair.to) {
      network_.path_of.push_back(kNone);
      network_.latency_of.push_back(0);
      return true;
    }
    network_.path_of.push_back(first);
    network_.latency_of.push_back(0);
    add(number_of({pair.from, true}));
    const auto last = static_cast<std::uint32_t>(end_of_link(number_of({pair.to, true})));
    nodes_.clear();
    std::uint32_t node = end_of_link(number_of({pair.from, true}));
    bool is_whole = true;
    for (; node != last && seen_[node] == kNone;) {
      seen_[node] = static_cast<std::uint32_t>(network_.paths.size());
      nodes_.push_back(node);
      const NodeId here{static_cast<int>(node)};
      const auto hops = setup_.routes.next_hops(here, NodeId{static_cast<int>(last)});
      is_whole = !hops.empty();
      if (!is_whole) break;
      add(hops[hops.size() == 1 ? 0 : choose(here, hops.size())]);
      node = end_of_link(network_.paths.back());
    }
    if (!is_whole) network_.paths.push_back(PacketNetwork::kPathEnds);
    if (is_whole && node == last) add(number_of({pair.to, false}));
    if (is_whole && node != last) network_.paths.push_back(PacketNetwork::kLoopsBack | seen_[node]);
    for (const std::uint32_t passed : nodes_)
      seen_[passed] = kNone;
    return is_whole;
  }

 private:
  std::uint32_t end_of_link(std::uint32_t link) const { return network_.links[link].end; }
  void add(std::uint32_t link) {
    network_.paths.push_back(link);
    network_.latency_of.back() += network_.links[link].latency;
  }

  const PacketSetup& setup_;
  PacketNetwork& network_;
  std::vector<std::uint32_t>
      seen_;  // per node: where the path leaves it; kNone: it has not come by
  std::vector<std::uint32_t> nodes_;
};

}  // namespace

Result<PacketNetwork> make_packet_network(const PacketSetup& setup, const PacketOptions& options) {
  PacketNetwork network;
  for (const topo::Link& link : setup.graph.links)
    for (const bool forward : {true, false})
      network.links.push_back(link_of(link, forward));
  const std::size_t inside = setup.graph.nodes.size();
  for (std::size_t i = 0;
       setup.intra_server_links != nullptr && i < setup.intra_server_links->links.capacity.size();
       ++i)
    network.links.push_back(intra_server_link_of(setup.intra_server_links->links, i, inside));
  PathWriter writer(setup, network);
  for (std::uint32_t pair = 0; pair < setup.pairs.pairs.size(); ++pair) {
    const LinkId to = setup.pairs.pairs[pair].to;
    network.targets.push_back({static_cast<std::uint32_t>(setup.graph.links[to.index()].b.value),
                               number_of({to, false})});
    if (const auto path = intra_server_path(setup, pair); path)
      network.targets.back() = {static_cast<std::uint32_t>(inside), path->into};
    for (std::uint32_t i = 0; i < setup.pairs.connections; ++i) {
      const EcmpNextHop choose{setup.pairs.tuple(pair, i), setup.seeds, options.policy};
      if (writer.write(pair, choose)) continue;
      const auto name = [&](LinkId link) { return setup.graph.links[link.index()].name; };
      return Error{
          Code::kInvalidInput,
          fmt::format("no way leads from {} to {}; change the routes or the pair",
                      name(setup.pairs.pairs[pair].from), name(setup.pairs.pairs[pair].to))};
    }
  }
  return network;
}

void update_paths(const PacketSetup& setup, HashPolicy policy, PacketNetwork& network) {
  const std::vector<std::uint32_t> paths = std::exchange(network.path_of, {});
  const std::vector<Picoseconds> latencies = std::exchange(network.latency_of, {});
  PathWriter writer(setup, network);
  for (std::uint32_t pair = 0; pair < setup.pairs.pairs.size(); ++pair)
    for (std::uint32_t i = 0; i < setup.pairs.connections; ++i) {
      const EcmpNextHop choose{setup.pairs.tuple(pair, i), setup.seeds, policy};
      if (writer.write(pair, choose)) continue;
      network.path_of.back() = paths[network.path_of.size() - 1];
      network.latency_of.back() = latencies[network.path_of.size() - 1];
    }
}

}  // namespace regatta::fabric::packet
