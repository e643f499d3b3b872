#include <algorithm>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::os {
namespace {

bool has_word(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_plain(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.size() > 4000) return false;
  if (path.find_first_of(std::string_view("\n\0", 2)) != std::string_view::npos) return false;
  if (path == "/") return true;
  const auto parts = split(path.substr(1), '/');
  return std::none_of(parts.begin(), parts.end(), [](std::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

}  // namespace

std::string to_string(const CgroupPath& group) {
  return group.hierarchy.empty() ? group.path : group.hierarchy + ":" + group.path;
}

Result<CgroupPath> parse_cgroup_path(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::size_t colon = text.find(':');
  CgroupPath group;
  const bool has_hierarchy = colon != std::string_view::npos && colon != 0 && colon + 1 == slash;
  if (has_hierarchy) group.hierarchy = text.substr(0, colon);
  group.path = has_hierarchy ? text.substr(slash) : text;
  if (is_plain(group.path)) return group;
  return Error{Code::kInvalidInput,
               "cgroup '" + printable(text, 200) +
                   "': write it as in /proc/PID/cgroup, like /a/b or memory:/a/b"};
}

std::vector<CgroupPath> parse_cgroups(std::string_view text) {
  std::vector<CgroupPath> groups;
  for (const std::string& line : split(text, '\n')) {
    // "4:cpu,cpuacct:/a" or "0::/a"; a path may hold colons.
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    for (const std::string& name : split(line.substr(first + 1, second - first - 1), ','))
      groups.push_back({name, path});
  }
  return groups;
}

std::optional<std::string> path_in(const std::vector<CgroupPath>& groups,
                                   std::string_view hierarchy) {
  for (const CgroupPath& group : groups) {
    if (group.hierarchy == hierarchy) return group.path;
  }
  return std::nullopt;
}

bool is_within(std::string_view path, std::string_view group) {
  if (group == "/") return !path.empty() && path.front() == '/';
  return path.substr(0, group.size()) == group &&
         (path.size() == group.size() || path[group.size()] == '/');
}

std::optional<CgroupMount> find_cgroup_mount(std::string_view mountinfo,
                                             std::string_view hierarchy) {
  for (const std::string& line : split(mountinfo, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto left = split(std::string_view(line).substr(0, dash), ' ');
    const auto right = split(std::string_view(line).substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const bool matches = hierarchy.empty() ? right[0] == "cgroup2"
                                           : right[0] == "cgroup" && has_word(right[2], hierarchy);
    if (matches) return CgroupMount{left[3], left[4]};
  }
  return std::nullopt;
}

Result<std::string> cgroup_folder(const CgroupPath& group, const std::string& proc) {
  REGATTA_TRY(mountinfo, read_file(proc + "/self/mountinfo"));
  const auto mount = find_cgroup_mount(mountinfo, group.hierarchy);
  if (!mount) {
    return Error{Code::kUnsupported,
                 "cgroup " + to_string(group) + ": its hierarchy is not mounted here"};
  }
  if (!is_within(group.path, mount->root)) {
    return Error{Code::kUnsupported,
                 "cgroup " + to_string(group) + ": cannot be seen from this container"};
  }
  const std::string below = mount->root == "/" ? group.path : group.path.substr(mount->root.size());
  return below == "/" ? mount->point : mount->point + below;
}

}  // namespace regatta::os
