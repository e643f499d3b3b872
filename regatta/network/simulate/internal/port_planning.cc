#include "regatta/network/simulate/internal/port_planning.h"

#include <algorithm>

#include "regatta/base/core/stats.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::simulate {

std::vector<std::uint32_t> seeds_of(const SimulatedNetwork& network, const Routing& routing) {
  std::vector<std::uint32_t> seeds = network.seeds;
  if (routing.shares_seed) std::ranges::fill(seeds, 1U);
  return seeds;
}

void draw_ports(ScenarioWorkload& workload, std::uint64_t seed) {
  // With the default seed they stay as a kernel that begins anew assigns them.
  const std::uint64_t shift = splitmix_finish(seed - 1) % fabric::kFreePorts;
  for (std::uint16_t& port : workload.pairs.ports)
    port = static_cast<std::uint16_t>(fabric::kFirstFreePort +
                                      (port - fabric::kFirstFreePort + shift) % fabric::kFreePorts);
}

PortPlanSummary plan_ports(ScenarioWorkload& workload, const Routing& routing, std::uint64_t seed) {
  std::vector<fabric::PlannedConnection> connections;
  std::vector<std::size_t> place;  // in Pairs::ports
  for (std::uint32_t pair = 0; pair < workload.ranks_of.size(); ++pair) {
    const auto [from, to] = workload.pairs.pairs[pair];
    if (from == to) continue;
    for (std::uint32_t i = 0; i < workload.pairs.connections; ++i) {
      connections.push_back({from, to, workload.pairs.tuple(pair, i)});
      place.push_back(std::size_t{pair} * workload.pairs.connections + i);
    }
  }
  const fabric::PortPlan plan = fabric::plan_ports(
      workload.network.routes, seeds_of(workload.network, routing), connections, {.seed = seed});
  for (std::size_t i = 0; i < place.size(); ++i)
    workload.pairs.ports[place[i]] = plan.ports[i];
  return {plan.most_by_chance, plan.most};
}

}  // namespace regatta::simulate
