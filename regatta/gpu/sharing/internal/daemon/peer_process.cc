#include "regatta/gpu/sharing/internal/daemon/peer_process.h"

#include <cerrno>
#include <string>
#include <utility>

#include <sys/socket.h>

#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace regatta::sharing {
namespace {

Error is_gone(pid_t pid) {
  return {Code::kNotFound, "process " + std::to_string(pid) + ": is gone"};
}

}  // namespace

Result<os::UniqueFd> open_peer(int socket, pid_t pid) {
  int fd = -1;
  socklen_t size = sizeof fd;
  os::UniqueFd pidfd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) {
    pidfd = os::UniqueFd(fd);
  } else if (errno == ENOPROTOOPT) {
    REGATTA_TRY(by_number, os::open_pidfd(pid));
    pidfd = std::move(by_number);
  }
  if (!pidfd || has_ended(pidfd)) return is_gone(pid);
  return pidfd;
}

Result<PeerProcess> read_peer_process(int socket, pid_t pid) {
  REGATTA_TRY(pidfd, open_peer(socket, pid));
  REGATTA_TRY(stat, read_process(pid));
  // It lives, so the number was its own throughout.
  if (has_ended(pidfd)) return is_gone(pid);
  return PeerProcess{stat, std::move(pidfd)};
}

}  // namespace regatta::sharing
