#include "regatta/network/simulate/internal/path_finder.h"

#include <algorithm>
#include <map>
#include <set>

#include "regatta/network/fabric/ecmp.h"
#include "regatta/network/simulate/internal/ports.h"

namespace regatta::simulate {

PathFinder::PathFinder(const Work& work, const Routing& routing, const StandIns& stand_ins)
    : work_(work),
      routing_(routing),
      stand_ins_(stand_ins),
      seeds_(seeds_of(work.network, routing)),
      spreader_(work.network) {
  if (routing.policy == RoutePolicy::kEcmp) ways_of_pair_ = work.pairs.connections;
  first_ring_ = static_cast<std::uint32_t>(work.ranks_of.size()) * ways_of_pair_;
  const topo::Graph& graph = work.network.graph;
  place_.resize(graph.links.size());
  std::vector<std::size_t> next(graph.nodes.size(), 0);
  for (std::size_t link = 0; link < graph.links.size(); ++link)
    if (graph.links[link].a_nic >= 0) place_[link] = next[graph.links[link].b.index()]++;
}

std::uint32_t PathFinder::count() const {
  return first_bundle() + static_cast<std::uint32_t>(work_.bundles.size());
}

RankPair PathFinder::ranks_of(std::uint32_t number) const {
  if (number >= first_bundle()) {
    const Bundle& bundle = work_.bundles[number - first_bundle()];
    return {work_.alike.groups[bundle.from].front(), work_.alike.groups[bundle.to].back()};
  }
  if (number >= first_ring_) return work_.ranks_of[work_.rings[number - first_ring_].front()];
  return work_.ranks_of[number / ways_of_pair_];
}

void PathFinder::take(const fabric::Routes& routes) {
  routes_ = &routes;
  between_.clear();
}

std::optional<Way> PathFinder::find(std::uint32_t number) {
  if (number >= first_bundle()) return of_bundle(work_.bundles[number - first_bundle()]);
  if (number >= first_ring_) return of_ring(number - first_ring_);
  return of_pair(number / ways_of_pair_, number % ways_of_pair_);
}

std::optional<Way> PathFinder::of_pair(std::uint32_t pair, std::uint32_t connection) {
  const Network& network = work_.network;
  const RankPair ranks = work_.ranks_of[pair];
  if (ranks.from == ranks.to) return Way{};
  if (network.devices[ranks.from].server == network.devices[ranks.to].server)
    return Way{.links = {network.link_out_of(ranks.from), network.link_into(ranks.to)}};
  const auto [from, to] = work_.pairs.pairs[pair];
  std::optional<std::vector<std::uint32_t>> links;
  switch (routing_.policy) {
    case RoutePolicy::kEcmp:
      links = routes_->way(from, to, fabric::ByHash{work_.pairs.tuple(pair, connection), seeds_});
      break;
    case RoutePolicy::kDestination:
      links = routes_->way(from, to, network.by_destination.to(place_[to.index()]));
      break;
    default:
      return spread(from, to);
  }
  if (!links) return std::nullopt;
  return Way{.links = std::move(*links)};
}

PathFinder::Leaves PathFinder::leaves_of(LinkId from, LinkId to) const {
  const topo::Graph& graph = work_.network.graph;
  return {graph.links[from.index()].b, graph.links[to.index()].b};
}

void PathFinder::show_spreads(LinkFold& fold) {
  std::set<Leaves> all;
  for (std::size_t pair = 0; pair < work_.ranks_of.size(); ++pair) {
    const auto [from, to] = work_.pairs.pairs[pair];
    if (from != to) all.insert(leaves_of(from, to));
  }
  for (const Bundle& bundle : work_.bundles)
    if (!bundle.is_inside) all.insert(leaves_of(nic_of(bundle.from), nic_of(bundle.to)));
  Spread spread;
  for (const auto& [from, to] : all)
    if (spreader_.find(*routes_, from, to, spread)) fold.see(spread.links, spread.amounts);
}

const std::optional<Spread>& PathFinder::between(Leaves leaves) {
  const auto [at, is_new] = between_.try_emplace(leaves);
  if (!is_new) return at->second;
  Spread spread;
  if (!spreader_.find(*routes_, leaves.first, leaves.second, spread)) return at->second;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < spread.links.size(); ++i) {
    if (!first_alike_.empty() && first_alike_[spread.links[i]] != spread.links[i]) continue;
    spread.links[kept] = spread.links[i];
    spread.amounts[kept++] = spread.amounts[i];
  }
  spread.links.resize(kept);
  spread.amounts.resize(kept);
  spread.links.shrink_to_fit();
  spread.amounts.shrink_to_fit();
  at->second = std::move(spread);
  return at->second;
}

// Evenly over the next hops of each switch, as packets that are sprayed.
std::optional<Way> PathFinder::spread(LinkId from, LinkId to) {
  const std::optional<Spread>& inner = between(leaves_of(from, to));
  if (!inner) return std::nullopt;
  const topo::Graph& graph = work_.network.graph;
  Way way;
  way.links.reserve(inner->links.size() + 2);
  way.amounts.reserve(inner->links.size() + 2);
  way.links.push_back(fabric::number_of({from, true}));
  way.links.insert(way.links.end(), inner->links.begin(), inner->links.end());
  way.links.push_back(fabric::number_of({to, false}));
  way.amounts.push_back(1);
  way.amounts.insert(way.amounts.end(), inner->amounts.begin(), inner->amounts.end());
  way.amounts.push_back(1);
  way.latency = graph.links[from.index()].latency.value + graph.links[to.index()].latency.value +
                inner->latency;
  return way;
}

LinkId PathFinder::nic_of(std::uint32_t group) const {
  return work_.alike.nic_like[work_.alike.groups[group].front()];
}

std::optional<Way> PathFinder::of_bundle(const Bundle& bundle) {
  const Network& network = work_.network;
  const std::uint32_t sender = work_.alike.groups[bundle.from].front();
  const std::uint32_t receiver = work_.alike.groups[bundle.to].front();
  const auto sends = static_cast<double>(bundle.sends);
  const auto receives = static_cast<double>(bundle.receives);
  if (bundle.is_inside) {
    const std::uint32_t out = network.link_out_of(sender);
    const std::uint32_t into = network.link_into(receiver);
    return Way{.links = {stand_ins_.of(out), stand_ins_.of(into)},
               .amounts = {sends, receives},
               .latency = network.links.latency[out] + network.links.latency[into]};
  }
  std::optional<Way> way = spread(nic_of(bundle.from), nic_of(bundle.to));
  if (!way) return way;
  for (double& amount : way->amounts)
    amount *= static_cast<double>(bundle.messages);
  way->links.front() = stand_ins_.of(way->links.front());
  way->links.back() = stand_ins_.of(way->links.back());
  way->amounts.front() = sends;
  way->amounts.back() = receives;
  return way;
}

std::optional<Way> PathFinder::of_ring(std::uint32_t ring) {
  std::map<std::uint32_t, double> amounts;
  double slowest = 0;
  const std::vector<std::uint32_t>& pairs = work_.rings[ring];
  for (const std::uint32_t pair : pairs) {
    for (std::uint32_t connection = 0; connection < ways_of_pair_; ++connection) {
      const std::optional<Way> way = of_pair(pair, connection);
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
