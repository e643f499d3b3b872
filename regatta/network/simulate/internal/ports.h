// simulate/internal/ports.h: source ports for the pairs of some work that keep their connections
// apart.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/network/simulate/internal/work.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

// The seeds of hashing of the switches, by NodeId.
std::vector<std::uint32_t> seeds_of(const Network& network, const Routing& routing);

struct PlannedPorts {
  std::uint32_t most_by_chance = 0;  // connections on one link between switches
  std::uint32_t most = 0;            // the same with the planned ports
};

// Gives all connections of the work the ports of fabric/port_plan.h.
PlannedPorts plan_ports(Work& work, const Routing& routing, std::uint64_t seed);

}  // namespace regatta::simulate
