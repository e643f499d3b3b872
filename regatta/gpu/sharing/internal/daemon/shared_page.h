// sharing/internal/daemon/shared_page.h: a page of memory that the daemon shares with a process.
#pragma once

#include <cstdint>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

// A memory file of one page, mapped for writing.
class SharedPage {
 public:
  SharedPage() = default;
  // Makes a page that cannot be shortened or grown, and with `is_read_only` not be written by other
  // processes. kUnavailable when the kernel cannot do that.
  static Result<SharedPage> create(const char* name, bool is_read_only);
  // Whether `fd` is a descriptor that create() made for a read-only page, in this daemon or an
  // earlier one of its user, or a copy of it: what is inherited and sent is, what a process opens
  // anew by /proc/PID/fd is not.
  static bool is_handed_down(const os::UniqueFd& fd);
  // Maps a page that create() made in this or an earlier daemon. kInvalidInput when it is none.
  static Result<SharedPage> map(os::UniqueFd fd);
  SharedPage(SharedPage&& other) noexcept;
  SharedPage& operator=(SharedPage&& other) noexcept;
  ~SharedPage();

  int fd() const { return fd_.get(); }
  os::UniqueFd release_fd() { return std::move(fd_); }
  std::uint64_t inode() const { return inode_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  SharedPage(os::UniqueFd fd, void* memory, std::uint64_t inode)
      : fd_(std::move(fd)), memory_(memory), inode_(inode) {}

  os::UniqueFd fd_;
  void* memory_ = nullptr;
  std::uint64_t inode_ = 0;
};

}  // namespace regatta::sharing
