// os/memory.h: how much memory a process may still take.
#pragma once

#include <string>

#include "regatta/base/core/units.h"

namespace regatta::os {

// The least of what the machine has left, what the cgroup at the root of `root`/sys/fs/cgroup may
// still take, and what RLIMIT_AS leaves: 1 byte or more. 0: not known.
Bytes free_memory(const std::string& root = "");

}  // namespace regatta::os
