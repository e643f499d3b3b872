#include "regatta/gpu/sharing/internal/client/known_fd.h"

#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta::sharing {

KnownFd::KnownFd(os::UniqueFd fd) {
  struct stat state {};
  if (!fd || ::fstat(fd.get(), &state) != 0) return;
  fd_ = fd.release();
  file_system_ = state.st_dev;
  inode_ = state.st_ino;
}

KnownFd::KnownFd(KnownFd&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), file_system_(other.file_system_), inode_(other.inode_) {}

KnownFd& KnownFd::operator=(KnownFd&& other) noexcept {
  if (this == &other) return *this;
  reset();
  fd_ = std::exchange(other.fd_, -1);
  file_system_ = other.file_system_;
  inode_ = other.inode_;
  return *this;
}

int KnownFd::get() const {
  struct stat state {};
  if (fd_ < 0 || ::fstat(fd_, &state) != 0) return -1;
  return state.st_dev == file_system_ && state.st_ino == inode_ ? fd_ : -1;
}

void KnownFd::reset() {
  const int own = get();
  if (own >= 0) ::close(own);
  fd_ = -1;
}

void SpareFds::release() {
  for (KnownFd& fd : fds_)
    fd.reset();
}

void SpareFds::fill(int of) {
  for (KnownFd& fd : fds_)
    if (of >= 0 && !fd) fd = KnownFd(os::UniqueFd(::fcntl(of, F_DUPFD_CLOEXEC, 0)));
}

}  // namespace regatta::sharing
