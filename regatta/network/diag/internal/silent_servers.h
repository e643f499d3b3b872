// diag/internal/silent_servers.h: servers that report nothing and answer no probe. Pure.
#pragma once

#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/locator_options.h"
#include "regatta/network/diag/internal/probe_windows.h"

namespace regatta::diag {

// A verdict for each such server, over the windows up to `last`; none when most servers are silent:
// then the reports do not arrive.
std::vector<FaultVerdict> silent_servers(const topo::Graph& graph, const ProbeWindows& windows,
                                         Window last, const LocatorOptions& options);

}  // namespace regatta::diag
