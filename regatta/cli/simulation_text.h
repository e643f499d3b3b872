// cli/simulation_text.h: what a simulated scenario came to, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "regatta/simulate/network.h"
#include "regatta/simulate/run.h"
#include "regatta/simulate/scenario.h"

namespace regatta::cli {

// The keys of docs/formats/scenario.md.
nlohmann::json simulation_json(const simulate::Scenario& scenario, const simulate::Network& network,
                               const simulate::Outcome& outcome);

// `took`: seconds of this machine.
void print_simulation(const simulate::Scenario& scenario, const simulate::Network& network,
                      const simulate::Outcome& outcome, double took);

}  // namespace regatta::cli
