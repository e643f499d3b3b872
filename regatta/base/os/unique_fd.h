// os/unique_fd.h: file descriptors that close themselves, their limit, and the text of errno.
#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "regatta/base/core/result.h"

namespace regatta::os {

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

// The error of a failed system call: "what: reason", with the Code for `number`. A missing object
// is kNotFound, an existing one kConflict, a forbidden or missing feature kUnsupported, an
// exhausted resource kExhausted, EINVAL kInvalidInput, ETIMEDOUT kTimeout, all else kUnavailable.
Error errno_error(std::string_view what, int number = errno);

// The C library's text of `number` with a small first letter, safe from any thread.
std::string errno_text(int number = errno);

// Raises the soft limit so that this process can open `count` more descriptors. kExhausted when the
// hard limit is lower.
Status raise_descriptor_limit(std::size_t count);

// Closes all descriptors from `first` on, owned or not: for a child of fork().
Status close_descriptors_from(int first);

}  // namespace regatta::os
