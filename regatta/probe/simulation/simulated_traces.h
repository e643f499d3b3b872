// probe/simulation/simulated_traces.h: traceroutes in a simulation (simulation.h), asked for as
// `regatta probe` asks for them.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "regatta/core/units.h"
#include "regatta/diag/locator.h"
#include "regatta/fabric/routes.h"
#include "regatta/probe/inquiry.h"
#include "regatta/probe/matrix.h"
#include "regatta/probe/simulation/simulation.h"
#include "regatta/topo/graph.h"

namespace regatta::probe {

// How the ways were planned.
struct Planned {
  const fabric::Routes& routes;
  std::span<const std::uint32_t> seeds;
};

class SimulatedTraces {
 public:
  // All must outlive this.
  SimulatedTraces(const topo::Graph& graph, const Planned& planned, const Matrix& matrix)
      : inquiry_(graph, planned.routes, planned.seeds, matrix) {}

  // After each window: asks the routers of the simulation, and hands over to the locator what has
  // been answered by now.
  void go_on(Simulation& simulation, diag::Locator& locator);

 private:
  Inquiry inquiry_;
  std::multimap<Seconds, Simulation::Answer> coming_;
};

}  // namespace regatta::probe
