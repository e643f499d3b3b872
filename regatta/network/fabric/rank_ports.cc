#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/port_plan.h"

namespace regatta::fabric {
namespace {

constexpr std::uint8_t kTcp = 6;

Result<std::vector<LinkId>> nics_of(const topo::Graph& graph, std::span<const RankEndpoint> ranks) {
  std::vector<LinkId> nics;
  for (const RankEndpoint& rank : ranks) {
    const auto link = topo::link_of(rank.address);
    if (!link || link->index() >= graph.links.size() || graph.links[link->index()].a_nic < 0) {
      return Error{Code::kInvalidInput,
                   fmt::format("{} is the address of no NIC of this fabric; give the cluster that "
                               "the ranks run on",
                               topo::address_text(rank.address))};
    }
    nics.push_back(*link);
  }
  return nics;
}

class Table {
 public:
  Table(const topo::Graph& graph, const Routes& routes, std::span<const RankEndpoint> ranks,
        std::vector<LinkId> nics)
      : graph_(graph),
        routes_(routes),
        ranks_(ranks),
        nics_(std::move(nics)),
        is_named_(ranks.size() * ranks.size()) {}

  // `has_turns`: the i-th connections of all pairs are a turn.
  void add(const RankPairs& pairs, std::uint32_t set, bool has_turns, std::uint32_t count) {
    for (const auto& [from, to] : pairs) {
      const std::size_t pair = from * ranks_.size() + to;
      if (is_named_[pair]) continue;
      is_named_[pair] = true;
      if (!has_choice(from, to)) continue;
      for (std::uint32_t i = 0; i < count; ++i) {
        connections.push_back({.from = nics_[from],
                               .to = nics_[to],
                               .flow = {.from = ranks_[from].address,
                                        .to = ranks_[to].address,
                                        .to_port = ranks_[to].port,
                                        .protocol = kTcp},
                               .set = set,
                               .turn = has_turns ? i : 0});
        places.push_back(pair * count + i);
      }
    }
  }

  std::vector<PlannedConnection> connections;
  std::vector<std::size_t> places;  // in RankPorts::ports

 private:
  bool has_choice(std::size_t from, std::size_t to) const {
    const auto& links = graph_.links;
    if (links[nics_[from].index()].a == links[nics_[to].index()].a) return false;
    const auto path =
        routes_.path(nics_[from], nics_[to], [](NodeId, std::size_t) { return std::size_t{0}; });
    return path && path->size() > 2;
  }

  const topo::Graph& graph_;
  const Routes& routes_;
  std::span<const RankEndpoint> ranks_;
  std::vector<LinkId> nics_;
  std::vector<bool> is_named_;  // by pair
};

// How many paths the connections of a pair take, of the pair with the most.
std::uint32_t most_paths(const Table& table, const RankPorts& planned, const Routes& routes,
                         const EcmpNextHop& hash) {
  std::size_t most = 1;
  for (std::size_t first = 0; first < table.places.size(); first += planned.connections) {
    std::set<std::vector<std::uint32_t>> paths;
    for (std::size_t i = first; i < first + planned.connections; ++i) {
      const PlannedConnection& one = table.connections[i];
      EcmpNextHop choose = hash;
      choose.flow = one.flow;
      choose.flow.from_port = planned.ports[table.places[i]];
      if (auto path = routes.path(one.from, one.to, choose)) paths.insert(*std::move(path));
    }
    most = std::max(most, paths.size());
  }
  return static_cast<std::uint32_t>(most);
}

}  // namespace

RankPairs ring_of(std::span<const std::size_t> ranks) {
  RankPairs pairs;
  for (std::size_t i = 0; ranks.size() > 1 && i < ranks.size(); ++i)
    pairs.push_back({ranks[i], ranks[(i + 1) % ranks.size()]});
  return pairs;
}

Result<RankPorts> plan_rank_ports(const topo::Graph& graph, const Routes& routes,
                                  std::span<const std::uint32_t> seeds,
                                  std::span<const RankEndpoint> ranks, std::uint32_t connections,
                                  std::span<const RankPairs> sets, const PortPlanOptions& options) {
  REGATTA_TRY(nics, nics_of(graph, ranks));
  RankPorts planned{.ports = std::vector<std::uint16_t>(ranks.size() * ranks.size() * connections),
                    .ranks = ranks.size(),
                    .connections = connections,
                    .most = std::vector<std::uint32_t>(sets.size()),
                    .flows = std::vector<std::uint32_t>(sets.size())};
  Table table(graph, routes, ranks, std::move(nics));
  for (std::uint32_t set = 0; set < sets.size(); ++set)
    table.add(sets[set], set, true, connections);
  for (const PlannedConnection& one : table.connections)
    ++planned.flows[one.set];
  RankPairs all;
  for (std::size_t from = 0; from < ranks.size(); ++from)
    for (std::size_t to = 0; to < ranks.size(); ++to)
      if (from != to) all.push_back({from, to});
  table.add(all, static_cast<std::uint32_t>(sets.size()), false, connections);
  const PortPlan plan = plan_ports(routes, seeds, table.connections, options);
  for (std::size_t i = 0; i < table.places.size(); ++i)
    planned.ports[table.places[i]] = plan.ports[i];
  std::copy_n(plan.most_of_set.begin(), std::min(sets.size(), plan.most_of_set.size()),
              planned.most.begin());
  planned.paths = most_paths(table, planned, routes, {{}, seeds, options.policy});
  return planned;
}

}  // namespace regatta::fabric
