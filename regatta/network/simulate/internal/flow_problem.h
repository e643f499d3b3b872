// simulate/internal/paths.h: which paths the flows of some workload take through the network, for
// the flow level.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/simulate/internal/scenario_workload.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

struct FlowProblem {
  fabric::Links links;  // those of the network, and what stands for some of them
  fabric::Paths paths;
  fabric::FlowGraph traffic;
  // Flow f of the work is [parts[f], parts[f + 1]) here: a message over several connections is one
  // flow for each. Empty: the same numbers.
  std::vector<std::uint32_t> parts;
  std::vector<fabric::NetworkChange> changes;  // by time
  // Per link of the network: the one that has the bytes of both, for all paths cross them alike
  // (link_classes.h). Empty: each has its own.
  std::vector<std::uint32_t> link_representatives;
  // Links that stand for others (aggregate_links.h), each with one that carries all that it does.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> aggregate_links;
};

// Folded, it is the same problem with fewer links. Fails with kUnsupported for policies that only
// the packet level knows, with kInvalidInput where no path leads, or where a failure names what is
// not there.
Result<FlowProblem> build_flow_problem(const Scenario& scenario, const ScenarioWorkload& workload,
                                       bool merges_links = true);

}  // namespace regatta::simulate
