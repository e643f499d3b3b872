// lab/internal/processes.h: the processes inside the namespaces of a lab.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/lab/internal/state.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {

// Processes of all nodes, or of `node` alone when it is not empty, by process id. The inode of a
// namespace may belong to a stranger once the holder is dead, so then the identity that is never
// used again decides.
std::vector<LabProcess> find_processes(const LabState& state, const std::string& node = "");

// Sends `signal` to all of them until no new one turns up (they may be forking). Returns how many
// there were.
int signal_processes(const LabState& state, const std::string& node, int signal);

// SIGTERM, then SIGKILL after `patience`; returns when all have ended, kTimeout when some cannot
// be ended within 5 s more.
Status end_processes(const LabState& state, Seconds patience);

}  // namespace regatta::lab
