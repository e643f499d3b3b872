#include "regatta/simulate/path_finder.h"

#include <algorithm>
#include <map>
#include <span>

#include "regatta/fabric/ecmp.h"
#include "regatta/simulate/ports.h"

namespace regatta::simulate {

PathFinder::PathFinder(const Work& work, const Routing& routing)
    : work_(work), routing_(routing), seeds_(seeds_of(work.network, routing)) {
  if (routing.policy == RoutePolicy::kEcmp) ways_of_pair_ = work.pairs.connections;
  first_ring_ = static_cast<std::uint32_t>(work.ranks_of.size()) * ways_of_pair_;
  const topo::Graph& graph = work.network.graph;
  place_.resize(graph.links.size());
  std::vector<std::size_t> next(graph.nodes.size(), 0);
  for (std::size_t link = 0; link < graph.links.size(); ++link)
    if (graph.links[link].a_nic >= 0) place_[link] = next[graph.links[link].b.index()]++;
}

std::uint32_t PathFinder::count() const {
  return first_ring_ + static_cast<std::uint32_t>(work_.rings.size());
}

std::optional<Way> PathFinder::find(const fabric::Routes& routes, std::uint32_t number) const {
  if (number >= first_ring_) return of_ring(routes, number - first_ring_);
  return of_pair(routes, number / ways_of_pair_, number % ways_of_pair_);
}

std::optional<Way> PathFinder::of_pair(const fabric::Routes& routes, std::uint32_t pair,
                                       std::uint32_t connection) const {
  const Network& network = work_.network;
  const RankPair ranks = work_.ranks_of[pair];
  if (ranks.from == ranks.to) return Way{};
  if (network.devices[ranks.from].server == network.devices[ranks.to].server)
    return Way{.links = {network.link_out_of(ranks.from), network.link_into(ranks.to)}};
  const auto [from, to] = work_.pairs.pairs[pair];
  std::optional<std::vector<std::uint32_t>> links;
  switch (routing_.policy) {
    case RoutePolicy::kEcmp:
      links = routes.way(from, to, fabric::ByHash{work_.pairs.tuple(pair, connection), seeds_});
      break;
    case RoutePolicy::kDestination:
      links = routes.way(from, to, network.by_destination.to(place_[to.index()]));
      break;
    default:
      return spread(routes, from, to);
  }
  if (!links) return std::nullopt;
  return Way{.links = std::move(*links)};
}

// Evenly over the next hops of each switch, as packets that are sprayed.
std::optional<Way> PathFinder::spread(const fabric::Routes& routes, LinkId from, LinkId to) const {
  const topo::Graph& graph = work_.network.graph;
  const NodeId last = graph.links[to.index()].b;
  const auto end_of = [&](std::uint32_t link) {
    return link % 2 == 0 ? graph.links[link / 2].b : graph.links[link / 2].a;
  };
  std::map<std::uint32_t, double> amounts = {{fabric::number_of({from, true}), 1.0}};
  std::map<int, double> at = {{graph.links[from.index()].b.value, 1.0}};
  std::vector<std::uint32_t> order = {fabric::number_of({from, true})};
  double latency = graph.links[from.index()].latency.value + graph.links[to.index()].latency.value;
  while (!(at.size() == 1 && at.begin()->first == last.value)) {
    std::map<int, double> next;
    double slowest = 0;
    for (const auto& [node, share] : at) {
      if (node == last.value) {
        next[node] += share;
        continue;
      }
      const std::span<const std::uint32_t> hops = routes.next_hops(NodeId{node}, last);
      if (hops.empty()) return std::nullopt;
      for (const std::uint32_t hop : hops) {
        const double part = share / static_cast<double>(hops.size());
        if (amounts.try_emplace(hop, 0).second) order.push_back(hop);
        amounts[hop] += part;
        next[end_of(hop).value] += part;
        slowest = std::max(slowest, work_.network.links.latency[hop]);
      }
    }
    latency += slowest;
    at = std::move(next);
  }
  order.push_back(fabric::number_of({to, false}));
  amounts[order.back()] = 1;
  Way way{.links = std::move(order), .latency = latency};
  for (const std::uint32_t link : way.links)
    way.amounts.push_back(amounts[link]);
  return way;
}

std::optional<Way> PathFinder::of_ring(const fabric::Routes& routes, std::uint32_t ring) const {
  std::map<std::uint32_t, double> amounts;
  double slowest = 0;
  const std::vector<std::uint32_t>& pairs = work_.rings[ring];
  for (const std::uint32_t pair : pairs) {
    for (std::uint32_t connection = 0; connection < ways_of_pair_; ++connection) {
      const std::optional<Way> way = of_pair(routes, pair, connection);
      if (!way) return std::nullopt;
      double latency = 0;
      for (std::size_t hop = 0; hop < way->links.size(); ++hop) {
        const double amount = way->amounts.empty() ? 1 : way->amounts[hop];
        amounts[way->links[hop]] += amount / ways_of_pair_;
        latency += work_.network.links.latency[way->links[hop]];
      }
      slowest = std::max(slowest, way->latency >= 0 ? way->latency : latency);
    }
  }
  Way all{.latency = 2 * static_cast<double>(pairs.size() - 1) * slowest};
  for (const auto& [link, amount] : amounts) {
    all.links.push_back(link);
    all.amounts.push_back(amount);
  }
  return all;
}

}  // namespace regatta::simulate
