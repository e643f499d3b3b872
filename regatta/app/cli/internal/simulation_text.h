// cli/internal/simulation_text.h: what a simulated scenario came to, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/scenario.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::cli {

// The keys of docs/formats/scenario.md.
nlohmann::json simulation_json(const simulate::Scenario& scenario,
                               const simulate::SimulatedNetwork& network,
                               const simulate::SimulationResult& outcome);

// `took`: seconds of this machine.
void print_simulation(const simulate::Scenario& scenario, const simulate::SimulatedNetwork& network,
                      const simulate::SimulationResult& outcome, double took);

}  // namespace regatta::cli
