// report/simulation_html.h: a simulated scenario as one page without scripts that asks for nothing
// from outside: key figures, its items, how busy links were when, the slowest messages.
#pragma once

#include <string>

#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/scenario.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::report {

// The same page for the same outcome. All names are escaped.
std::string simulation_html(const simulate::Scenario& scenario,
                            const simulate::SimulatedNetwork& network,
                            const simulate::SimulationResult& outcome);

}  // namespace regatta::report
