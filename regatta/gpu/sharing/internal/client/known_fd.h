// sharing/internal/client/known_fd.h: a descriptor in a program that is not ours. The program may
// close all its descriptors, and the number is another file's then: neither used nor closed any
// more. A thread that closes it between a check and a use is not noticed.
#pragma once

#include <cstdint>

#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

class KnownFd {
 public:
  KnownFd() = default;
  explicit KnownFd(os::UniqueFd fd);
  KnownFd(KnownFd&& other) noexcept;
  KnownFd& operator=(KnownFd&& other) noexcept;
  KnownFd(const KnownFd&) = delete;
  KnownFd& operator=(const KnownFd&) = delete;
  ~KnownFd() { reset(); }

  // -1: there is none, or the program has closed it.
  int get() const;
  explicit operator bool() const { return get() >= 0; }
  void reset();

 private:
  int fd_ = -1;
  std::uint64_t file_system_ = 0;
  std::uint64_t inode_ = 0;
};

// Descriptors that are held so that the process can still reach its daemon when it has used up its
// own: released for the time of the calls that need one.
class SpareFds {
 public:
  void release();
  // As many as the process can still have; copies of `of`.
  void fill(int of);

 private:
  KnownFd fds_[2];
};

}  // namespace regatta::sharing
