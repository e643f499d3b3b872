// os/proc_table.h: the processes of this machine, as /proc tells them.
// Source: proc(5).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"

namespace regatta::os {

struct ProcessEntry {
  pid_t pid = -1;
  pid_t parent = -1;
  std::string command;                // up to 15 characters
  char state = '?';                   // R S D T Z ..., as in proc(5)
  unsigned long long start_time = 0;  // clock ticks after boot: with the pid, an identity
};

// kNotFound when the process is gone.
Result<ProcessEntry> read_process(pid_t pid, const std::string& proc = "/proc");

std::vector<ProcessEntry> list_processes(const std::string& proc = "/proc");

// True when `pid` is the process that started at `start_time` and has not ended (zombies have).
bool is_alive(pid_t pid, unsigned long long start_time, const std::string& proc = "/proc");

// Inode of the network namespace of `pid`: equal for processes that share one. Nothing when the
// process is gone or may not be looked at.
std::optional<unsigned long long> network_namespace_of(pid_t pid,
                                                       const std::string& proc = "/proc");

}  // namespace regatta::os
