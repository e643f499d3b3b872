// sharing/internal/daemon/process_id.h: identifies a process, and reads its facts from /proc.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

// A pid is reused; together with the start time it is not. exec() changes neither.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start = 0;  // ticks since boot

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

struct ProcessStat {
  ProcessId id;
  pid_t parent = 0;
  bool is_ending = false;  // a zombie: it has no memory any more
};

// kNotFound when there is no such process.
Result<ProcessStat> read_process(pid_t pid);

// The process's name (comm), "" when it is gone.
std::string process_name(pid_t pid);

// Whether the process is in this process's PID namespace; false when that is unknown.
bool is_in_own_pid_namespace(pid_t pid);

// Whether the process has mapped a memory file with this name and inode, which exec() ends. True
// when that is unknown.
bool has_mapped(pid_t pid, const std::string& name, std::uint64_t inode);

// Opens the memory file `name` with `inode` that the process holds. kNotFound when it holds none,
// kUnsupported when this process may not look.
Result<os::UniqueFd> open_memory_file_of(pid_t pid, const std::string& name, std::uint64_t inode);

}  // namespace regatta::sharing
