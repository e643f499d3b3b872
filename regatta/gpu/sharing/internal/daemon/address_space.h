// sharing/internal/daemon/address_space.h: tells whether a process still runs the program that it
// ran, which exec() replaces without a change of the process's number.
#pragma once

#include <sys/types.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

class AddressSpace {
 public:
  AddressSpace() = default;  // one that nothing is known of; it counts as living
  // The one that the process has now; an unknown one where this process may not look.
  static AddressSpace of(pid_t process);
  static AddressSpace ended();

  // One system call, which takes no lock of the process and no time that depends on it.
  bool has_ended() const;

 private:
  os::UniqueFd pagemap_;
  bool is_ended_ = false;
};

}  // namespace regatta::sharing
