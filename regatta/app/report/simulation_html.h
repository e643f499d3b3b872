// report/simulation_html.h: a simulated scenario as one page without scripts that asks for nothing
// from outside: key figures, its items, how busy links were when, the slowest messages.
#pragma once

#include <string>

#include "regatta/network/simulate/network.h"
#include "regatta/network/simulate/run.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::report {

// The same page for the same outcome. All names are escaped.
std::string simulation_html(const simulate::Scenario& scenario, const simulate::Network& network,
                            const simulate::Outcome& outcome);

}  // namespace regatta::report
