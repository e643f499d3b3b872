#include "regatta/network/simulate/internal/ports.h"

#include <algorithm>

#include "regatta/network/fabric/port_plan.h"

namespace regatta::simulate {

std::vector<std::uint32_t> seeds_of(const Network& network, const Routing& routing) {
  std::vector<std::uint32_t> seeds = network.seeds;
  if (routing.shares_seed) std::ranges::fill(seeds, 1U);
  return seeds;
}

PlannedPorts plan_ports(Work& work, const Routing& routing, std::uint64_t seed) {
  std::vector<fabric::Connection> connections;
  std::vector<std::size_t> place;  // in Pairs::ports
  for (std::uint32_t pair = 0; pair < work.ranks_of.size(); ++pair) {
    const auto [from, to] = work.pairs.pairs[pair];
    if (from == to) continue;
    for (std::uint32_t i = 0; i < work.pairs.connections; ++i) {
      connections.push_back({from, to, work.pairs.tuple(pair, i)});
      place.push_back(std::size_t{pair} * work.pairs.connections + i);
    }
  }
  const fabric::PortPlan plan = fabric::plan_ports(
      work.network.routes, seeds_of(work.network, routing), connections, {.seed = seed});
  for (std::size_t i = 0; i < place.size(); ++i)
    work.pairs.ports[place[i]] = plan.ports[i];
  return {plan.most_by_chance, plan.most};
}

}  // namespace regatta::simulate
