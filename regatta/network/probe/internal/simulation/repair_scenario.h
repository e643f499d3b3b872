// probe/internal/simulation/repair_scenario.h: a fault that is repaired, and the verdicts that the
// locator reaches afterwards, when nothing is broken any more.
#pragma once

#include <vector>

#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/probe/internal/simulation/scenario.h"

namespace regatta::probe {

struct RepairOutcome {
  bool is_named = false;                   // before the repair
  std::vector<diag::FaultVerdict> blamed;  // begun after the repair: nothing was broken
  Seconds over_after{-1};                  // the repair; -1: it was still held 6 s later
};

// The fault lasts for 2 to 4 s from about 2.5 s on.
RepairOutcome try_repair(const topo::Graph& graph, const Matrix& matrix, SimulatedFault fault,
                         const SimulationOptions& options, const Planned* planned = nullptr);

}  // namespace regatta::probe
