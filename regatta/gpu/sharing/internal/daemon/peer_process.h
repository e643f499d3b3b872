// sharing/internal/daemon/peer_process.h: who asks over a socket, told apart from a later process
// of the same number.
#pragma once

#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/internal/daemon/process_id.h"

namespace regatta::sharing {

struct PeerProcess {
  ProcessId process;
  std::vector<os::CgroupPath> cgroups;  // as the daemon sees them
};

// The process that connected `socket`, whose number is `pid`. What is read about it is read while
// a pidfd says that it lives. The kernel gives the pidfd of the very process that connected
// (SO_PEERPIDFD, Linux 6.5); an older one is asked by number, where a process that ended at once
// after its message might be taken for the next of its number. kNotFound when it has ended.
Result<PeerProcess> read_peer_process(int socket, pid_t pid);

}  // namespace regatta::sharing
