// heal/verdicts.h: turns a locator's verdict into faults of routes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/heal/internal/decide.h"

namespace regatta::heal {

// The faults to hold against links and switches; none where routes cannot help: a server, host
// noise, no fault. Faults of a NIC's cable are reported to subscribers, which place jobs.
std::vector<Fault> faults_of(const diag::FaultVerdict& verdict);
// Whether ordinary probes meet the fault, as in Healer::report().
bool is_probed(const diag::FaultVerdict& verdict);

// The same as lines for the healer's socket (event_socket.h), each ending with a newline; "" for
// none.
std::string report_lines(const topo::Graph& graph, const diag::FaultVerdict& verdict);

// The losses of probes on all links as such a line, `span` as in diag::Locator::loss_span(); "" if
// it gets too long for the socket: a healer then acts on verdicts alone.
std::string losses_line(const topo::Graph& graph, std::span<const diag::LinkLoss> losses,
                        Seconds span);

}  // namespace regatta::heal
