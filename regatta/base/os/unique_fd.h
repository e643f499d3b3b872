// os/unique_fd.h: file descriptors that close themselves, their limit, and the text of errno.
#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "regatta/base/core/result.h"

namespace regatta::os {

// A file descriptor with one owner, and pipes.

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);  // closes the present one; errors of close() are dropped

 private:
  int fd_ = -1;
};

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

// Both ends are close-on-exec. Fails with kExhausted when no descriptor is left.
Result<Pipe> make_pipe();

// An Error out of a failed system call.

// "what: reason", with the Code that fits `number`: what is missing kNotFound, what is in the way
// kConflict, what is not allowed or not built in kUnsupported, what is used up kExhausted, EINVAL
// kInvalidInput, ETIMEDOUT kTimeout, else kUnavailable.
Error errno_error(std::string_view what, int number = errno);

// The C library's text of `number` with a small first letter, safe from any thread.
std::string errno_text(int number = errno);

// The file descriptors of this process: how many it may open, and an end of all.

// Sees that `count` more descriptors can be opened: raises the soft limit as far as needed.
// kExhausted when the hard limit is lower.
Status raise_descriptor_limit(std::size_t count);

// Closes all descriptors from `first` on, owned or not: for a child of fork().
Status close_descriptors_from(int first);

}  // namespace regatta::os
