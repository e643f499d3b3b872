// probe/internal/simulation/simulated_traces.h: traceroutes in a simulation (simulation.h),
// requested as in `regatta probe`.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/probe/evidence_collector.h"
#include "regatta/network/probe/internal/simulation/simulation.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

// How the paths were planned.
struct Planned {
  const fabric::Routes& routes;
  std::span<const std::uint32_t> seeds;
};

class SimulatedTraces {
 public:
  // All must outlive this.
  SimulatedTraces(const topo::Graph& graph, const Planned& planned, const Matrix& matrix)
      : evidence_collector_(graph, planned.routes, planned.seeds, matrix) {}

  // After each window: queries the routers of the simulation, and passes the answers so far to the
  // locator.
  void go_on(Simulation& simulation, diag::Locator& locator);

 private:
  EvidenceCollector evidence_collector_;
  std::multimap<Seconds, Simulation::Answer> coming_;
};

}  // namespace regatta::probe
