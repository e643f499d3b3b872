#include "regatta/fabric/rank_ports.h"

#include <fmt/format.h>

#include "regatta/topo/addresses.h"

namespace regatta::fabric {
namespace {

constexpr std::uint8_t kTcp = 6;

struct Group {
  std::vector<Connection> connections;
  std::vector<std::size_t> places;  // in RankPorts::ports
};

}  // namespace

Result<RankPorts> plan_rank_ports(const topo::Graph& graph, const Routes& routes,
                                  std::span<const std::uint32_t> seeds,
                                  std::span<const RankPlace> ranks, std::uint32_t connections,
                                  const PortOptions& options) {
  std::vector<LinkId> nics;
  for (const RankPlace& rank : ranks) {
    const auto link = topo::link_of(rank.address);
    if (!link || link->index() >= graph.links.size() || graph.links[link->index()].a_nic < 0) {
      return Error{Code::kInvalidInput,
                   fmt::format("{} is the address of no NIC of this fabric; give the cluster that "
                               "the ranks run on",
                               topo::address_text(rank.address))};
    }
    nics.push_back(*link);
  }
  RankPorts planned{.ports = std::vector<std::uint16_t>(ranks.size() * ranks.size() * connections),
                    .ranks = ranks.size(),
                    .connections = connections};
  Group ring;
  Group others;
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      if (nics[from] == nics[to]) continue;
      Group& group = to == (from + 1) % ranks.size() ? ring : others;
      for (std::uint32_t i = 0; i < connections; ++i) {
        group.connections.push_back({nics[from],
                                     nics[to],
                                     {.from = ranks[from].address,
                                      .to = ranks[to].address,
                                      .to_port = ranks[to].port,
                                      .protocol = kTcp}});
        group.places.push_back((from * ranks.size() + to) * connections + i);
      }
    }
  }
  for (const Group* group : {&ring, &others}) {
    const PortPlan plan = plan_ports(routes, seeds, group->connections, options);
    for (std::size_t i = 0; i < group->places.size(); ++i)
      planned.ports[group->places[i]] = plan.ports[i];
    if (group == &ring) planned.most_in_ring = plan.most;
  }
  return planned;
}

}  // namespace regatta::fabric
