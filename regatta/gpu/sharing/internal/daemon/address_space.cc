#include "regatta/gpu/sharing/internal/daemon/address_space.h"

#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "regatta/gpu/sharing/internal/daemon/process_id.h"

namespace regatta::sharing {
namespace {

// A file of /proc/PID/pagemap belongs to the address space at its opening. A read of one byte is
// refused, for entries have eight, but only while that address space is in use; after that it is
// the end of the file. Source: proc_pid_pagemap(5), and Linux, fs/proc/task_mmu.c (pagemap_read).
bool is_in_use(const os::UniqueFd& pagemap) {
  char byte = 0;
  return ::pread(pagemap.get(), &byte, 1, 0) != 0;
}

// None for a thread that has ended.
os::UniqueFd open_pagemap(const std::string& folder) {
  os::UniqueFd file(::open((folder + "pagemap").c_str(), O_RDONLY | O_CLOEXEC));
  if (file && !is_in_use(file)) file.reset();
  return file;
}

}  // namespace

AddressSpace AddressSpace::of(pid_t process) {
  AddressSpace space;
  space.pagemap_ = open_pagemap("/proc/" + std::to_string(process) + "/");
  if (space.pagemap_) return space;
  const auto stat = read_process(process);
  if (stat && !stat->has_main_thread) space.pagemap_ = open_pagemap(folder_of_living_thread(*stat));
  return space;
}

AddressSpace AddressSpace::ended() {
  AddressSpace space;
  space.is_ended_ = true;
  return space;
}

bool AddressSpace::has_ended() const {
  return is_ended_ || (pagemap_ && !is_in_use(pagemap_));
}

}  // namespace regatta::sharing
