// simulate/internal/simulation_statistics.h: what a simulation reports of operations, slow messages
// and links, from the times of its flows and the bytes of its links.
#pragma once

#include <vector>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/simulate/internal/scenario_workload.h"
#include "regatta/network/simulate/run_scenario.h"

namespace regatta::simulate {

// Adds the operations, the slowest messages and the links to `outcome`, whose end and history are
// known. `flows`: by flow of the traffic; `bytes_of_link`: by directed link.
void add_statistics(SimulationResult& outcome, const ScenarioWorkload& workload,
                    const std::vector<fabric::FlowTimes>& flows,
                    const std::vector<double>& bytes_of_link);

}  // namespace regatta::simulate
