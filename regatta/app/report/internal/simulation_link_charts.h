// report/internal/simulation_link_charts.h: the load of links and their queues over the time of a
// simulation, as sections of its page, with the failures marked.
#pragma once

#include <string>
#include <vector>

#include "regatta/app/report/internal/html_text.h"
#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::report {

// A simulation and its failures: times of `marks` are in seconds.
struct SimulationView {
  const simulate::SimulatedNetwork& network;
  const simulate::SimulationResult& outcome;
  std::vector<ChartMark> marks;
};

// Mean use by kind of link, and the use of the busiest links.
std::string links_over_time(const SimulationView& view);

// The same of queues; empty where none was simulated or nothing waited.
std::string queues_over_time(const SimulationView& view);

}  // namespace regatta::report
