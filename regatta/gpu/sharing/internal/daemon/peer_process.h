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

// The process that connected `socket`, with the number `pid`. It is read while a pidfd proves that
// it lives. The kernel gives the pidfd of the very process that connected (SO_PEERPIDFD, Linux
// 6.5); before that the pidfd is opened by number, where a process that ended directly after its
// message might be taken for the next one with its number. kNotFound when it has ended.
Result<PeerProcess> read_peer_process(int socket, pid_t pid);

}  // namespace regatta::sharing
