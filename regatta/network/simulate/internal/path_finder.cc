#include "regatta/network/simulate/internal/path_finder.h"

#include <algorithm>
#include <map>
#include <set>

#include "regatta/network/fabric/traffic.h"
#include "regatta/network/simulate/internal/port_planning.h"

namespace regatta::simulate {

PathFinder::PathFinder(const ScenarioWorkload& workload, const Routing& routing,
                       const AggregateLinks& aggregate_links)
    : workload_(workload),
      routing_(routing),
      aggregate_links_(aggregate_links),
      seeds_(seeds_of(workload.network, routing)),
      sprayed_path_finder_(workload.network) {
  if (routing.policy == RoutePolicy::kEcmp) paths_of_pair_ = workload.pairs.connections;
  first_ring_ = static_cast<std::uint32_t>(workload.ranks_of.size()) * paths_of_pair_;
  const topo::Graph& graph = workload.network.graph;
  place_.resize(graph.links.size());
  std::vector<std::size_t> next(graph.nodes.size(), 0);
  for (std::size_t link = 0; link < graph.links.size(); ++link)
    if (graph.links[link].a_nic >= 0) place_[link] = next[graph.links[link].b.index()]++;
}

std::uint32_t PathFinder::count() const {
  return first_bundle() + static_cast<std::uint32_t>(workload_.bundles.size());
}

EndpointPair PathFinder::ranks_of(std::uint32_t number) const {
  if (number >= first_bundle()) {
    const Bundle& bundle = workload_.bundles[number - first_bundle()];
    return {workload_.rank_classes.classes[bundle.from].front(),
            workload_.rank_classes.classes[bundle.to].back()};
  }
  if (number >= first_ring_)
    return workload_.ranks_of[workload_.rings[number - first_ring_].front()];
  return workload_.ranks_of[number / paths_of_pair_];
}

void PathFinder::set_routes(const fabric::Routes& routes) {
  routes_ = &routes;
  between_.clear();
}

void PathFinder::set_dead(const std::vector<bool>& is_dead) {
  sprayed_path_finder_.set_dead(is_dead);
  between_.clear();
}

std::optional<WeightedPath> PathFinder::find(std::uint32_t number) {
  if (number >= first_bundle()) return of_bundle(workload_.bundles[number - first_bundle()]);
  if (number >= first_ring_) return of_ring(number - first_ring_);
  return of_pair(number / paths_of_pair_, number % paths_of_pair_);
}

std::optional<WeightedPath> PathFinder::of_pair(std::uint32_t pair, std::uint32_t connection) {
  const SimulatedNetwork& network = workload_.network;
  const EndpointPair ranks = workload_.ranks_of[pair];
  if (ranks.from == ranks.to) return WeightedPath{};
  if (network.are_joined(ranks.from, ranks.to))
    return WeightedPath{.links = {network.link_out_of(ranks.from), network.link_into(ranks.to)}};
  const auto [from, to] = workload_.pairs.pairs[pair];
  std::optional<std::vector<std::uint32_t>> links;
  switch (routing_.policy) {
    case RoutePolicy::kEcmp:
      links = routes_->path(from, to,
                            fabric::EcmpNextHop{workload_.pairs.tuple(pair, connection), seeds_});
      break;
    case RoutePolicy::kDestination:
      links = routes_->path(from, to, network.d_mod_k.to(place_[to.index()]));
      break;
    default:
      return sprayed(from, to);
  }
  if (!links) return std::nullopt;
  return WeightedPath{.links = std::move(*links)};
}

PathFinder::Leaves PathFinder::leaves_of(LinkId from, LinkId to) const {
  const topo::Graph& graph = workload_.network.graph;
  return {graph.links[from.index()].b, graph.links[to.index()].b};
}

void PathFinder::add_sprayed_paths(LinkClasses& classes) {
  std::set<Leaves> all;
  for (std::size_t pair = 0; pair < workload_.ranks_of.size(); ++pair) {
    const auto [from, to] = workload_.pairs.pairs[pair];
    if (from != to) all.insert(leaves_of(from, to));
  }
  for (const Bundle& bundle : workload_.bundles)
    if (!bundle.is_inside) all.insert(leaves_of(nic_of(bundle.from), nic_of(bundle.to)));
  SprayedPath sprayed;
  for (const auto& [from, to] : all)
    if (sprayed_path_finder_.find(*routes_, from, to, sprayed))
      classes.add(sprayed.links, sprayed.amounts);
}

const std::optional<SprayedPath>& PathFinder::between(Leaves leaves) {
  const auto [at, is_new] = between_.try_emplace(leaves);
  if (!is_new) return at->second;
  SprayedPath sprayed;
  if (!sprayed_path_finder_.find(*routes_, leaves.first, leaves.second, sprayed)) return at->second;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sprayed.links.size(); ++i) {
    if (!link_representatives_.empty() &&
        link_representatives_[sprayed.links[i]] != sprayed.links[i])
      continue;
    sprayed.links[kept] = sprayed.links[i];
    sprayed.amounts[kept++] = sprayed.amounts[i];
  }
  sprayed.links.resize(kept);
  sprayed.amounts.resize(kept);
  sprayed.links.shrink_to_fit();
  sprayed.amounts.shrink_to_fit();
  at->second = std::move(sprayed);
  return at->second;
}

// Evenly over the next hops of each switch, as packets that are sprayed.
std::optional<WeightedPath> PathFinder::sprayed(LinkId from, LinkId to) {
  const std::optional<SprayedPath>& inner = between(leaves_of(from, to));
  if (!inner) return std::nullopt;
  const topo::Graph& graph = workload_.network.graph;
  WeightedPath path;
  path.links.reserve(inner->links.size() + 2);
  path.amounts.reserve(inner->links.size() + 2);
  path.links.push_back(fabric::number_of({from, true}));
  path.links.insert(path.links.end(), inner->links.begin(), inner->links.end());
  path.links.push_back(fabric::number_of({to, false}));
  path.amounts.push_back(inner->sent);
  path.lost = inner->sent > 1 ? 1 - 1 / inner->sent : 0;
  path.amounts.insert(path.amounts.end(), inner->amounts.begin(), inner->amounts.end());
  path.amounts.push_back(1);
  path.latency = graph.links[from.index()].latency.value + graph.links[to.index()].latency.value +
                 inner->latency;
  return path;
}

LinkId PathFinder::nic_of(std::uint32_t group) const {
  return workload_.rank_classes.representative_nic[workload_.rank_classes.classes[group].front()];
}

std::optional<WeightedPath> PathFinder::of_bundle(const Bundle& bundle) {
  const SimulatedNetwork& network = workload_.network;
  const std::uint32_t sender = workload_.rank_classes.classes[bundle.from].front();
  const std::uint32_t receiver = workload_.rank_classes.classes[bundle.to].front();
  const auto sends = static_cast<double>(bundle.sends);
  const auto receives = static_cast<double>(bundle.receives);
  if (bundle.is_inside) {
    const std::uint32_t out = network.link_out_of(sender);
    const std::uint32_t into = network.link_into(receiver);
    return WeightedPath{.links = {aggregate_links_.of(out), aggregate_links_.of(into)},
                        .amounts = {sends, receives},
                        .latency = network.links.latency[out] + network.links.latency[into]};
  }
  std::optional<WeightedPath> path = sprayed(nic_of(bundle.from), nic_of(bundle.to));
  if (!path) return path;
  for (double& amount : path->amounts)
    amount *= static_cast<double>(bundle.messages);
  path->links.front() = aggregate_links_.of(path->links.front());
  path->links.back() = aggregate_links_.of(path->links.back());
  path->amounts.front() *= sends / static_cast<double>(bundle.messages);
  path->amounts.back() = receives;
  return path;
}

std::optional<WeightedPath> PathFinder::of_ring(std::uint32_t ring) {
  std::map<std::uint32_t, double> amounts;
  double slowest = 0;
  const std::vector<std::uint32_t>& pairs = workload_.rings[ring];
  for (const std::uint32_t pair : pairs) {
    for (std::uint32_t connection = 0; connection < paths_of_pair_; ++connection) {
      const std::optional<WeightedPath> path = of_pair(pair, connection);
      if (!path) return std::nullopt;
      double latency = 0;
      for (std::size_t hop = 0; hop < path->links.size(); ++hop) {
        const double amount = path->amounts.empty() ? 1 : path->amounts[hop];
        amounts[path->links[hop]] += amount / paths_of_pair_;
        latency += workload_.network.links.latency[path->links[hop]];
      }
      slowest = std::max(slowest, path->latency >= 0 ? path->latency : latency);
    }
  }
  WeightedPath all{.latency = 2 * static_cast<double>(pairs.size() - 1) * slowest};
  for (const auto& [link, amount] : amounts) {
    all.links.push_back(link);
    all.amounts.push_back(amount);
  }
  return all;
}

}  // namespace regatta::simulate
