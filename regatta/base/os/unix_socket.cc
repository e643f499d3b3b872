#include <cerrno>
#include <cstring>

#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

constexpr int kBacklog = 64;
constexpr timeval kTimeout{.tv_sec = 1, .tv_usec = 0};

// 0, or the error's number. The backlog of a stopped listener fills up, and connect(2) would then
// wait for ever.
int connect_to(const UniqueFd& fd, const UnixAddress& address) {
  constexpr timeval kForEver{};
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof kTimeout) != 0 ||
      ::connect(fd.get(), address.get(), address.size()) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kForEver, sizeof kForEver) != 0)
    return errno;
  return 0;
}

// Removes the socket that a killed program left; a path that is no socket belongs to others.
Status make_room(const std::string& path) {
  struct stat state {};
  if (::lstat(path.c_str(), &state) != 0) return {};
  if (!S_ISSOCK(state.st_mode))
    return Error{Code::kInvalidInput,
                 path +
                     ": something that is no socket lies here; move it away or choose another "
                     "path for the socket"};
  ::unlink(path.c_str());
  return {};
}

}  // namespace

Result<UnixAddress> unix_address(const std::string& path) {
  UnixAddress address;
  address.value.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.value.sun_path)
    return Error{Code::kInvalidInput,
                 path + ": not the length of a socket's name; choose a shorter path"};
  std::memcpy(address.value.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<UniqueFd> connect_unix(const std::string& path, int type) {
  REGATTA_TRY(address, unix_address(path));
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const int error = connect_to(fd, address);
  if (error == EAGAIN)
    return Error{Code::kUnavailable, path + ": who listens here takes no connection for a second"};
  if (error != 0) return errno_error(path, error);
  return fd;
}

Result<UniqueFd> listen_unix(const std::string& path, int type) {
  REGATTA_TRY(address, unix_address(path));
  const int error = connect_to(UniqueFd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0)), address);
  // Stopped, or of another type: a process listens there.
  if (error == 0 || error == EAGAIN || error == EPROTOTYPE)
    return Error{Code::kConflict, path + ": another program listens here"};
  if (error == ECONNREFUSED) REGATTA_TRY_DO(make_room(path));
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::bind(fd.get(), address.get(), address.size()) != 0 ||
      ::listen(fd.get(), kBacklog) != 0)
    return errno_error(path);
  return fd;
}

}  // namespace regatta::os
