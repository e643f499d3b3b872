// heal/verdicts.h: what a locator's verdict means for the routes.
#pragma once

#include <string>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/heal/internal/decide.h"

namespace regatta::heal {

// The faults to hold against links and switches; none for what routes cannot do anything about: a
// server, host noise, nothing. Those of a NIC's cable are told to subscribers, who place jobs.
std::vector<Fault> faults_of(const diag::FaultVerdict& verdict);

// The same as lines for the healer's socket (feed.h), each ending with a newline; "" for none.
std::string report_lines(const topo::Graph& graph, const diag::FaultVerdict& verdict);

}  // namespace regatta::heal
