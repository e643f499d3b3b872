// node_agent/internal/rank_process.h: starts one rank of a replica. The supervisor links this: no
// dependency but the C library.
#pragma once

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/platform/node_agent/internal/run_folder.h"

namespace regatta::node_agent {

struct StartedRank {
  pid_t pid = -1;
  int output =
      -1;  // read end of the pipe with stdout and stderr, non-blocking; owned by the caller
};

// Starts rank `local_rank` of the replica in its own process group, in the group spec.cgroup, as
// spec.user without the way to more rights (PR_SET_NO_NEW_PRIVS). It ends with this process. A
// command that cannot be run ends the rank with status 127, or 126 when it is not executable, and a
// line in its output. kExhausted where no process can be made.
Result<StartedRank> start_rank(const ReplicaSpec& spec, int local_rank);

}  // namespace regatta::node_agent
