// report/internal/simulation_link_charts.h: the part of a simulated scenario's page that shows its
// network over time: how busy links were, and how much waited for them.
#pragma once

#include <string>

#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::report {

// Empty where no history was kept.
std::string links_over_time(const simulate::SimulatedNetwork& network,
                            const simulate::SimulationResult& outcome);

// Empty also where nothing ever waited, and at the flow level, which knows no queues.
std::string queues_over_time(const simulate::SimulatedNetwork& network,
                             const simulate::SimulationResult& outcome);

}  // namespace regatta::report
