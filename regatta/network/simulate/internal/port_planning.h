// simulate/internal/port_planning.h: source ports for the pairs of a workload: by chance, or such
// that spread their connections.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/network/simulate/internal/scenario_workload.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

// The seeds of hashing of the switches, by NodeId.
std::vector<std::uint32_t> seeds_of(const SimulatedNetwork& network, const Routing& routing);

// Moves the ports of all connections by a distance that the seed determines, none for seed 1. Those
// of a pair stay distinct.
void draw_ports(ScenarioWorkload& workload, std::uint64_t seed);

struct PortPlanSummary {
  std::uint32_t most_by_chance = 0;  // connections on one link between switches
  std::uint32_t most = 0;            // the same with the planned ports
};

// Gives all connections of the workload the ports of fabric/port_plan.h.
PortPlanSummary plan_ports(ScenarioWorkload& workload, const Routing& routing, std::uint64_t seed);

}  // namespace regatta::simulate
