// os/memory.h: the memory that a process may still allocate, and waits for a word in memory.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "regatta/base/core/units.h"

namespace regatta::os {

// The least of the free memory of the machine, of the cgroup at the root of `root`/sys/fs/cgroup,
// and of RLIMIT_AS: 1 byte or more. 0: not known.
Bytes free_memory(const std::string& root = "");

// Resident set of a process, shared pages in full; 0: it is gone. Source: proc(5), statm.
Bytes resident_memory(pid_t pid);

// Waits for a change of a 32-bit word, which processes may share. Returns when the word is not
// `value`, on a wake, after the timeout, or spuriously: read the word again. Source: futex(2).
void futex_wait(const void* word, std::uint32_t value, std::uint64_t limit_ns);

void futex_wake_one(const void* word);
void futex_wake_all(const void* word);

}  // namespace regatta::os
