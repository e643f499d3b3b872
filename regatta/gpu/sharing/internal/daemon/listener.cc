#include "regatta/gpu/sharing/internal/daemon/listener.h"

#include <filesystem>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {
namespace {

// A user who may rename files in the folder could put a socket of their own in this one's place,
// and be sent the tokens of tenants.
Status check_folder(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return os::errno_error(folder);
  const bool is_trusted = status.st_uid == 0 || status.st_uid == ::geteuid();
  const bool is_writable = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (is_trusted && (!is_writable || (status.st_mode & S_ISVTX) != 0)) return {};
  const std::string why =
      is_trusted ? "others may write to it" : "belongs to user " + std::to_string(status.st_uid);
  return Error{Code::kInvalidInput,
               folder + ": " + why +
                   ", who could replace the socket; give --socket a path in a folder of this "
                   "user's own, or forbid it with chown and chmod go-w"};
}

}  // namespace

Result<os::UniqueFd> open_listener(const std::string& path) {
  if (connect_to_daemon(path, Seconds{1.0})) {
    return Error{Code::kConflict, path + ": another daemon answers there; give another --socket"};
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return Error{Code::kInvalidInput, path + ": is there and no socket; give another --socket"};
  }
  // Containers mount this folder and not the socket, which is another file after each start.
  const auto folder = std::filesystem::path(path).parent_path();
  const auto wrong_place = [](Error error) {
    if (error.code != Code::kExhausted) error.code = Code::kInvalidInput;
    error.message += "; give --socket a path in a folder that this user may write";
    return error;
  };
  if (!folder.empty()) {
    if (const Status made = os::make_folder(folder.string()); !made)
      return wrong_place(made.error());
    REGATTA_TRY_DO(check_folder(folder.string()));
  }
  ::unlink(path.c_str());
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return os::errno_error("cannot make a socket");
  const int on = 1;
  REGATTA_TRY(address, os::unix_address(path));
  // Accepted connections inherit SO_PASSCRED. All users may connect from the first moment on,
  // because a refused client would not retry.
  const mode_t before = ::umask(0111);
  const bool is_bound = ::setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
                        ::bind(fd.get(), address.get(), address.size()) == 0;
  const int reason = errno;
  ::umask(before);
  if (!is_bound) return wrong_place(os::errno_error(path, reason));
  if (::listen(fd.get(), 1024) != 0) return os::errno_error(path);
  return fd;
}

}  // namespace regatta::sharing
