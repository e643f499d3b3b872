// node_agent/internal/process_end.h: ends all processes of a replica, also those that it has made
// behind its own back: by their cgroup, and by the tree of processes below the supervisor. The
// supervisor links this: no dependency but the C library.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace regatta::node_agent {

// Processes in the cgroup `folder`, v1 or v2; none where `folder` is "".
std::vector<pid_t> cgroup_members(const std::string& folder);

// SIGKILL to every process of the group. With v2 the kernel does it in one step (cgroup.kill, Linux
// 5.14); with v1 the group is frozen first, so that no process escapes by a fork. Source:
// cgroups(7); Linux, admin-guide/cgroup-v1/freezer-subsystem.rst.
void kill_cgroup(const std::string& folder);

// Children of `root`, their children, and so on, in /proc.
std::vector<pid_t> descendants_of(pid_t root);

// Processes whose environment has the variable `entry` ("NAME=VALUE"): what is left of a replica
// whose supervisor was killed where no cgroup can be used.
std::vector<pid_t> processes_with_variable(const std::string& entry);

}  // namespace regatta::node_agent
