// node_agent/internal/supervisor.h: the process that runs the ranks of one replica and outlives the
// agent. It ends with the last of them. It links no library but the C library.
#pragma once

#include <string>

namespace regatta::node_agent {

inline constexpr const char* kSupervisorProgram = "regatta-supervisor";

// The life of a supervisor: takes the lock of the folder `run`, starts what its spec says, and
// writes the exit file when no process is left. Ends the ranks when one has failed, on SIGTERM
// (SIGTERM to them, SIGKILL after the grace), at once on SIGUSR1, and at once when the lease in
// `lease_path` has expired. Returns the exit status of the program: 0 when the exit file tells how
// the replica ended, 1 where none could be written, 3 where the replica has a supervisor.
int supervise(const std::string& run, const std::string& lease_path);

}  // namespace regatta::node_agent
