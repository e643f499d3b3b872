// simulate/internal/ways.h: which ways the flows of some work take through the network, for the
// flow level.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/simulate/internal/work.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

struct FlowProblem {
  fabric::Links links;  // those of the network, and what stands for some of them
  fabric::Paths paths;
  fabric::Traffic traffic;
  // Flow f of the work is [parts[f], parts[f + 1]) here: a message over several connections is one
  // flow for each. Empty: the same numbers.
  std::vector<std::uint32_t> parts;
  std::vector<fabric::NetworkChange> changes;  // by time
  // Per link of the network: the one that has the bytes of both, for all ways cross them alike
  // (link_fold.h). Empty: each has its own.
  std::vector<std::uint32_t> first_alike;
  // Links that stand for others (stand_ins.h), each with one that carries all that it does.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> stand_ins;
};

// Folded, it is the same problem with fewer links. Fails with kUnsupported for policies that only
// the packet level knows, with kInvalidInput where no way leads, or where a failure names what is
// not there.
Result<FlowProblem> lead_flows(const Scenario& scenario, const Work& work, bool folds_links = true);

}  // namespace regatta::simulate
