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
  bool has_main_thread = true;  // false: it has ended, as by pthread_exit(); others may live
};

// kNotFound when there is no such process. Whether it has ended says its pidfd.
Result<ProcessStat> read_process(pid_t pid);

// Whether the process of this pidfd has ended: all its threads have.
bool has_ended(const os::UniqueFd& pidfd);

// The folder in /proc of a thread that lives: "/proc/PID", or where the main thread has ended,
// "/proc/PID/task/TID". A main thread that has ended has no descriptors, no memory, and no cgroup
// (v1), whatever the process still has.
std::string folder_of_living_thread(const ProcessStat& process);

// The process's name (comm), "" when it is gone.
std::string process_name(pid_t pid);

// Whether the process is in this process's PID namespace; false when that is unknown.
bool is_in_own_pid_namespace(pid_t pid);

// Opens the memory file `name` with `inode` that the process holds; no other file is opened, and
// none is waited for. kNotFound when it holds none, kUnsupported when this process may not look,
// kExhausted when it holds too many descriptors to look at.
Result<os::UniqueFd> open_memory_file_of(const ProcessStat& process, const std::string& name,
                                         std::uint64_t inode);

}  // namespace regatta::sharing
