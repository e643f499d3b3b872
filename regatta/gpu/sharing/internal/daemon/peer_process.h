// sharing/internal/daemon/peer_process.h: who asks over a socket, told apart from a later process
// of the same number.
#pragma once

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/process_id.h"

namespace regatta::sharing {

struct PeerProcess {
  ProcessStat stat;
  os::UniqueFd pidfd;  // of the very process; what is read by its number is its own while it lives
};

// The pidfd of the process that connected `socket`, with the number `pid`. The kernel gives that of
// the very process that connected (SO_PEERPIDFD, Linux 6.5); before that it is opened by number,
// where a process that ended directly after its message might be taken for the next one with its
// number. kNotFound when it has ended.
Result<os::UniqueFd> open_peer(int socket, pid_t pid);

// kNotFound when it has ended.
Result<PeerProcess> read_peer_process(int socket, pid_t pid);

}  // namespace regatta::sharing
