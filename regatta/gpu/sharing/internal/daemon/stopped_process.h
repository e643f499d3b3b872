// sharing/internal/daemon/stopped_process.h: whether a process is stopped, by a signal, a debugger
// or with its cgroup: then it ends no turn by itself.
#pragma once

#include <sys/types.h>

namespace regatta::sharing {

// False when the process is gone, and where the kernel does not say. Sources: proc_pid_stat(5), the
// states T and t; proc_pid_wchan(5), in which a frozen task waits for its freezer.
bool is_stopped_process(pid_t pid);

}  // namespace regatta::sharing
