// simulate/storm_cause.h: where a pause storm of a simulation began, in words.
#pragma once

#include <string>

#include "regatta/network/fabric/port_pfc_watchdog.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::simulate {

// The name of the node where the storm began.
std::string storm_root_name(const SimulatedNetwork& network, const fabric::PauseTree& tree);

// "the NIC of s3 lets nothing in", "more comes to leaf0 than leaves it", "links wait for each
// other".
std::string storm_cause_text(const SimulatedNetwork& network, const fabric::PauseTree& tree);

}  // namespace regatta::simulate
