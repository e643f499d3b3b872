// os/cgroup.h: folders that hold threads to a share of a core, by the CFS bandwidth controller.
// Source: Linux, Documentation/scheduler/sched-bwc.rst and admin-guide/cgroup-v2.rst (threads).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::os {

enum class CgroupVersion { kV1, kV2 };

// Where this process may make its own groups of the cpu controller.
struct CpuCgroupRoot {
  CgroupVersion version = CgroupVersion::kV1;
  std::string folder;
};

// Reads /proc/self/{mountinfo,cgroup} under `proc` and tries the folder out. kUnsupported gives
// the reason in one sentence: no controller, no right to write.
Result<CpuCgroupRoot> find_cpu_cgroup_root(const std::string& proc = "/proc");

// Makes the group `root.folder/name` that limits nothing, goes before other work of the machine
// where that may be set, and holds limited groups. A process joins its `cgroup.procs`
// (SpawnOptions::cgroup_procs) to go before others, and with v2 has to before one of its threads
// may join a group inside. Returns its folder.
Result<std::string> make_cpu_group(const CpuCgroupRoot& root, const std::string& name);

// Makes the group `parent/name` whose threads together get `share` of one core (0 < share <= 1)
// in every period of 10 ms (longer when share < 0.1: the kernel's least quota is 1 ms). Returns
// its folder.
Result<std::string> make_limited_group(const std::string& parent, const std::string& name,
                                       double share);

// Moves the calling thread, and no other one, into `folder`.
Status join_cgroup(const std::string& folder);

// Removes `folder` and the groups within; success when it is not there. kConflict when threads
// are still inside after `timeout`.
Status remove_cgroup(const std::string& folder, Seconds timeout = Seconds{1.0});

// Which cgroups a process is in, how they are written, and where they lie in the
// file system. Source: cgroups(7), proc(5) (mountinfo).

// A group, as the kernel names it. The hierarchy is "" for cgroup v2, for v1 the name of one of
// its controllers ("memory") or its own ("name=systemd").
struct CgroupPath {
  std::string hierarchy;
  std::string path;  // "/" or "/a/b"

  friend bool operator==(const CgroupPath&, const CgroupPath&) = default;
};

// "memory:/a/b", "name=systemd:/a/b", or "/a/b" for cgroup v2.
std::string to_string(const CgroupPath& group);
// The reverse. kInvalidInput unless the path is absolute and plain (no "..", no "//").
Result<CgroupPath> parse_cgroup_path(std::string_view text);

// The groups that /proc/PID/cgroup lists; one for each controller where v1 mounts several together.
std::vector<CgroupPath> parse_cgroups(std::string_view text);
// The group in this hierarchy, or nothing.
std::optional<std::string> path_in(const std::vector<CgroupPath>& groups,
                                   std::string_view hierarchy);
// Whether `path` is `group` or lies below it.
bool is_within(std::string_view path, std::string_view group);

// Where a hierarchy is mounted: `root` of it appears at `point`.
struct CgroupMount {
  std::string root;
  std::string point;
};
std::optional<CgroupMount> find_cgroup_mount(std::string_view mountinfo,
                                             std::string_view hierarchy);

// The group's folder, which may not exist. kUnsupported when no mount shows it.
Result<std::string> cgroup_folder(const CgroupPath& group, const std::string& proc = "/proc");

}  // namespace regatta::os
