#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

constexpr std::size_t kMostHops = 64;
constexpr std::uint32_t kPorts = 64;  // that are tried for each pair of NICs

std::vector<LinkId> nics_of(const topo::Graph& graph, NodeId leaf) {
  std::vector<LinkId> nics;
  for (const LinkId link : graph.links_of[leaf.index()])
    if (graph.links[link.index()].a_nic >= 0) nics.push_back(link);
  return nics;
}

class ConnectionSearch {
 public:
  ConnectionSearch(const topo::Graph& graph, const Routes& routes,
                   std::span<const std::uint32_t> seeds)
      : graph_(graph), routes_(routes), seeds_(seeds) {}

  // Adds up to `most` pairs from different NICs whose paths take `next` after `link`. Returns how
  // many.
  std::size_t add(std::uint32_t link, std::uint32_t next, NodeId target, std::size_t most,
                  NicPairs& pairs) const {
    const std::vector<LinkId> targets = nics_of(graph_, target);
    std::size_t found = 0;
    // Tries the leaves in turn, so that the traffic of the link comes from several sides.
    for (std::size_t round = 0; found < most; ++round) {
      bool is_last = true;
      for (const NodeId leaf : routes_.leaves()) {
        const std::vector<LinkId> nics = nics_of(graph_, leaf);
        if (leaf == target || round >= nics.size()) continue;
        is_last = false;
        if (found < most &&
            add_pair(nics[round], targets[round % targets.size()], link, next, pairs))
          ++found;
      }
      if (is_last) break;
    }
    return found;
  }

 private:
  // Adds the pair with a port for which the switches choose this path.
  bool add_pair(LinkId from, LinkId to, std::uint32_t link, std::uint32_t next,
                NicPairs& pairs) const {
    FiveTuple tuple{.from = topo::address_of(from),
                    .to = topo::address_of(to),
                    .to_port = kRoceV2Port,
                    .protocol = 17};
    for (std::uint32_t port = 0; port < kPorts; ++port) {
      tuple.from_port = static_cast<std::uint16_t>(kFirstFreePort + port);
      if (!takes(from, to, EcmpNextHop{tuple, seeds_}, link, next)) continue;
      pairs.add(from, to);
      pairs.ports.back() = tuple.from_port;
      return true;
    }
    return false;
  }

  // Routes::path() does not end where routes lead in a cycle.
  bool takes(LinkId from, LinkId to, const EcmpNextHop& choose, std::uint32_t link,
             std::uint32_t next) const {
    const NodeId last = graph_.links[to.index()].b;
    NodeId node = graph_.links[from.index()].b;
    std::uint32_t before = number_of({from, true});
    for (std::size_t hop = 0; hop < kMostHops && node != last; ++hop) {
      const auto hops = routes_.next_hops(node, last);
      if (hops.empty()) return false;
      const std::uint32_t here = hops[hops.size() == 1 ? 0 : choose(node, hops.size())];
      if (before == link && here == next) return true;
      node = head_of(graph_, here);
      before = here;
    }
    return false;
  }

  const topo::Graph& graph_;
  const Routes& routes_;
  std::span<const std::uint32_t> seeds_;
};

}  // namespace

Result<DeadlockWitness> find_deadlock_witness(const topo::Graph& graph, const Routes& routes,
                                              std::span<const std::uint32_t> seeds,
                                              const DependencyCycle& cycle) {
  const ConnectionSearch search(graph, routes, seeds);
  DeadlockWitness witness{.bytes = {16'000'000}};
  for (const std::size_t most : {8, 32, 128}) {
    NicPairs pairs;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const std::uint32_t next = cycle[(i + 1) % cycle.size()];
      const auto target = cause_of_dependency(graph, routes, cycle[i], next);
      if (target && search.add(cycle[i], next, *target, most, pairs) != 0) continue;
      return Error{Code::kNotFound,
                   fmt::format("no connection that was tried comes over {} and goes on over {}",
                               graph.links[cycle[i] / 2].name, graph.links[next / 2].name)};
    }
    FlowGraph traffic;
    for (std::uint32_t pair = 0; pair < pairs.pairs.size(); ++pair)
      traffic.add(pair, witness.bytes);
    REGATTA_TRY(report,
                simulate_packets({graph, routes, seeds, pairs}, traffic, {.pauses = PfcOptions{}}));
    witness.messages = pairs.pairs.size();
    witness.arrived = witness.messages - report.not_arrived;
    witness.deadlock = report.deadlock;
    witness.quiescent_at = report.quiescent_at;
    if (!witness.deadlock.empty()) break;
  }
  return witness;
}

}  // namespace regatta::fabric
