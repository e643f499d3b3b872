// reliability/blacklist.h: which nodes a job does better without, as they fail again and again.
#pragma once

#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/reliability/node_risk.h"
#include "regatta/platform/reliability/spares.h"

namespace regatta::reliability {

// The job whose nodes they are, and what it has besides.
struct KeepingTerms {
  RateBelief prior;      // of a node without a history
  SparePool pool;        // what the job needs, and how nodes come back
  int spares = 0;        // nodes beyond those that the job needs, those in repair too
  Seconds horizon;       // that the job still runs
  Seconds failure_cost;  // time that one failure costs the job
};

// False where the failures that are expected of the node, beyond those of a node without a history,
// cost the job more than waiting for the lack of one spare.
bool is_worth_keeping(const NodeHistory& node, const KeepingTerms& terms);

// Indices of nodes that failed at least kFailsAgain times and are not worth keeping, by falling
// expected failures; each leaves one spare fewer to those behind it.
inline constexpr double kFailsAgain = 2;
std::vector<int> nodes_to_avoid(std::span<const NodeHistory> nodes, KeepingTerms terms);

}  // namespace regatta::reliability
