#include "regatta/gpu/sharing/internal/daemon/peer_process.h"

#include <string>

#include <poll.h>
#include <sys/socket.h>

#include "regatta/base/os/file.h"
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

Result<os::UniqueFd> open_peer(int socket, pid_t pid) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) return os::UniqueFd(fd);
  if (errno == ENOPROTOOPT) return os::open_pidfd(pid);
  return is_gone(pid);
}

bool has_ended(const os::UniqueFd& pidfd) {
  pollfd entry{pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) != 0;
}

}  // namespace

Result<PeerProcess> read_peer_process(int socket, pid_t pid) {
  REGATTA_TRY(pidfd, open_peer(socket, pid));
  REGATTA_TRY(process, read_process(pid));
  const auto cgroups = os::read_file("/proc/" + std::to_string(pid) + "/cgroup");
  // It lives, so the number was its own throughout.
  if (!cgroups || process.is_ending || has_ended(pidfd)) return is_gone(pid);
  return PeerProcess{process.id, os::parse_cgroups(*cgroups)};
}

}  // namespace regatta::sharing
