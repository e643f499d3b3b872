// os/cgroup_path.h: which cgroups a process is in, how they are written, and where they lie in the
// file system. Source: cgroups(7), proc(5) (mountinfo).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::os {

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
