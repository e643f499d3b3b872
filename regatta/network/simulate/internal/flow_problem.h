// simulate/internal/flow_problem.h: the flows of a workload and their paths through the network,
// for the flow level.
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
  fabric::Links links;  // those of the network, and aggregate links
  fabric::Paths paths;
  fabric::FlowGraph traffic;
  // Flow f of the workload is [parts[f], parts[f + 1]) here: a message over several connections has
  // one flow for each. Empty: the same numbers.
  std::vector<std::uint32_t> parts;
  std::vector<fabric::NetworkChange> changes;  // by time
  // Per link of the network: its representative, which carries equal bytes (link_classes.h). Empty:
  // each represents itself.
  std::vector<std::uint32_t> link_representatives;
  // Aggregate links (aggregate_links.h), each with a link that carries all its bytes.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> aggregate_links;
};

// `merges_links`: like links are merged, which keeps all rates. Fails with kUnsupported for
// policies of the packet level alone, and with kInvalidInput where there is no path, or a failure
// names an unknown link or switch.
Result<FlowProblem> build_flow_problem(const Scenario& scenario, const ScenarioWorkload& workload,
                                       bool merges_links = true);

}  // namespace regatta::simulate
