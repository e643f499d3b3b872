// os/memory.h: how much memory a process may still take.
#pragma once

#include <cstdint>
#include <string>

#include "regatta/base/core/units.h"

namespace regatta::os {

// The least of what the machine has left, what the cgroup at the root of `root`/sys/fs/cgroup may
// still take, and what RLIMIT_AS leaves: 1 byte or more. 0: not known.
Bytes free_memory(const std::string& root = "");

// Waits for a change of a 32-bit word, also one that processes share.

// Returns when the word is not `value`, when somebody wakes us, when the time is over, or for no
// reason: look at the word again. Source: Linux manual page futex(2).
void futex_wait(const void* word, std::uint32_t value, std::uint64_t limit_ns);

void futex_wake_one(const void* word);
void futex_wake_all(const void* word);

}  // namespace regatta::os
