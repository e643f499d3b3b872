#include "regatta/platform/node_agent/internal/process_end.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <map>
#include <optional>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/platform/node_agent/internal/run_folder.h"

namespace regatta::node_agent {
namespace {

bool write_setting(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t count = ::write(fd, text.data(), text.size());
  ::close(fd);
  return count == static_cast<ssize_t>(text.size());
}

void wait_until_frozen(const std::string& folder) {
  for (int round = 0; round < 50; ++round) {
    const auto state = read_small_file(folder + "/freezer.state");
    if (!state || state->starts_with("FROZEN")) return;
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

std::vector<pid_t> process_ids() {
  std::vector<pid_t> ids;
  DIR* const folder = ::opendir("/proc");
  if (folder == nullptr) return ids;
  while (const dirent* const entry = ::readdir(folder))
    if (const auto id = parse_number<pid_t>(entry->d_name)) ids.push_back(*id);
  ::closedir(folder);
  return ids;
}

// The fourth field of /proc/PID/stat; the second one may hold anything, up to the last ')'.
std::optional<pid_t> parent_of(pid_t pid) {
  const auto stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return std::nullopt;
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || stat->size() < name_end + 5) return std::nullopt;
  const std::size_t begin = name_end + 4;  // ") S "
  const std::size_t end = stat->find(' ', begin);
  return parse_number<pid_t>(std::string_view(*stat).substr(begin, end - begin));
}

}  // namespace

std::vector<pid_t> cgroup_members(const std::string& folder) {
  std::vector<pid_t> members;
  if (folder.empty()) return members;
  const auto text = read_small_file(folder + "/cgroup.procs");
  if (!text) return members;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto pid = parse_number<pid_t>(rest.substr(0, end)); pid && *pid > 0)
      members.push_back(*pid);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return members;
}

void kill_cgroup(const std::string& folder) {
  if (folder.empty() || write_setting(folder + "/cgroup.kill", "1")) return;
  const bool is_freezer = write_setting(folder + "/freezer.state", "FROZEN");
  if (is_freezer) wait_until_frozen(folder);
  for (const pid_t member : cgroup_members(folder))
    ::kill(member, SIGKILL);
  if (is_freezer) static_cast<void>(write_setting(folder + "/freezer.state", "THAWED"));
}

std::vector<pid_t> descendants_of(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : process_ids())
    if (const auto parent = parent_of(pid)) children.emplace(*parent, pid);
  std::vector<pid_t> found = {root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child)
      found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> processes_with_variable(const std::string& entry) {
  std::vector<pid_t> found;
  const std::string inside = '\0' + entry + '\0';
  for (const pid_t pid : process_ids()) {
    const auto text = read_small_file("/proc/" + std::to_string(pid) + "/environ");
    if (text && ('\0' + *text).find(inside) != std::string::npos) found.push_back(pid);
  }
  return found;
}

}  // namespace regatta::node_agent
