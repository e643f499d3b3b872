// probe/internal/simulation/simulated_settings.h: swapped cables and addresses of two servers in a
// simulation, reported as in `regatta probe`: probers report their addresses, and ports name
// themselves once a fault has begun.
#pragma once

#include <span>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/probe/internal/simulation/simulation.h"

namespace regatta::probe {

// locator.locate(now), with the reports of those of `faults` that are wrong settings.
diag::FaultChanges locate_with_settings(const topo::Graph& graph,
                                        std::span<const SimulatedFault> faults,
                                        diag::Locator& locator, Seconds now);

}  // namespace regatta::probe
