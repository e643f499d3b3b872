// simulate/pause_cause.h: where a pause storm of a simulation began, in words.
#pragma once

#include <string>

#include "regatta/network/fabric/pause_tree.h"
#include "regatta/network/simulate/network.h"

namespace regatta::simulate {

// The node that it began at.
std::string root_name(const Network& network, const fabric::PauseTree& tree);

// "the NIC of s3 lets nothing in", "more comes to leaf0 than leaves it", "links wait for each
// other".
std::string cause_text(const Network& network, const fabric::PauseTree& tree);

}  // namespace regatta::simulate
